package cluster

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// supply puts a set of software that a runner lacks among the files, and answers with its
// name and hash there.
func (h *Hub) supply(m *nats.Msg) {
	h.beside.run(func() { // it may take a while
		ctx, cancel := context.WithTimeout(h.ctx, supplyTime)
		defer cancel()
		set := string(m.Data)
		var a answer
		dir, hash, err := h.c.Software(set)
		if err == nil {
			a.File = "software/" + hash
			a.Hash, err = h.keepFolder(ctx, a.File, dir, func() error {
				_, now, err := h.c.Software(set)
				if err == nil && now != hash {
					err = fmt.Errorf("set %s changed while it was read: ask again", set)
				}
				return err
			})
		}
		if err != nil {
			a.Error = model.OneLine(err.Error())
		}
		b, err := h.seal("software "+set, a)
		if err == nil {
			err = m.Respond(b)
		}
		if err != nil {
			h.c.Log.Warn("a runner's request for software could not be answered", "set", set, "err", err)
		}
	})
}

// supplyTime bounds how long it may take to bring a set of software.
const supplyTime = 10 * time.Minute

// answer is what a runner is told that asked for software.
type answer struct {
	File  string `json:"file,omitempty"`
	Hash  string `json:"hash,omitempty"` // SHA-256 of the file
	Error string `json:"error,omitempty"`
}

// keep puts content among the files, by its hash.
func (h *Hub) keep(ctx context.Context, content []byte) (name string, err error) {
	name = sum(content)
	if _, err := h.files.GetInfo(ctx, name); err == nil {
		return name, nil
	}
	_, err = h.files.PutBytes(ctx, name, content)
	return name, err
}

// keepFolder puts a folder among the files, and returns the hash of what is there. same says,
// after the folder was read, whether it is still the one that name stands for.
func (h *Hub) keepFolder(ctx context.Context, name, dir string, same func() error) (hash string, err error) {
	h.supplying.Lock() // many runners may ask for it at once
	defer h.supplying.Unlock()
	info, err := h.files.GetInfo(ctx, name)
	if err != nil {
		if err := put(ctx, h.files, name, dir); err != nil {
			return "", fmt.Errorf("read %s: %w", dir, err)
		}
		if err := same(); err != nil {
			return "", errors.Join(err, h.files.Delete(ctx, name))
		}
		if info, err = h.files.GetInfo(ctx, name); err != nil {
			return "", err
		}
	}
	b, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(info.Digest, "SHA-256="))
	return hex.EncodeToString(b), err
}

// put puts a folder, packed, into an object store.
func put(ctx context.Context, store jetstream.ObjectStore, name, dir string) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(pack(dir, write)) }()
	_, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, read)
	read.CloseWithError(err)
	return err
}
