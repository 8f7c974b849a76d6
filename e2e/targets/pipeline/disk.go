package main

import (
	"errors"
	"os"
	"path/filepath"
)

// publish gives a file that was written and synced its final name, so that after a
// crash there is either the whole of it or nothing.
func publish(temp, name string) error {
	if err := os.Rename(temp, name); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// replace writes a file anew: after an error, or a crash, the old content or the
// new one is there.
func replace(name string, content []byte) error {
	temp := name + ".tmp"
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return publish(temp, name)
}
