package cluster

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"

	"github.com/nats-io/nats.go"
)

// What makes a runner do something is signed by the daemon's authority: permissions alone do
// not keep one member of the broker from bringing words to another's ears, since JetStream
// answers to whatever subject it is given. With an existing NATS server there is no authority
// and no signature: who may publish there is its owner's business.

// signatureHeader is the header of a message that has one.
const signatureHeader = "Netsplit-Signature"

var errUnsigned = errors.New("it is not signed by the daemon")

func digestOf(subject string, data []byte) []byte {
	s := sha256.Sum256(append([]byte(subject+"\n"), data...))
	return s[:]
}

// sign signs data for a subject; "" without a key.
func sign(key *ecdsa.PrivateKey, subject string, data []byte) (string, error) {
	if key == nil {
		return "", nil
	}
	sig, err := ecdsa.SignASN1(rand.Reader, key, digestOf(subject, data))
	return base64.StdEncoding.EncodeToString(sig), err
}

// verify fails if data was not signed for a subject. Without a key all is well.
func verify(key *ecdsa.PublicKey, subject string, data []byte, signature string) error {
	if key == nil {
		return nil
	}
	sig, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !ecdsa.VerifyASN1(key, digestOf(subject, data), sig) {
		return errUnsigned
	}
	return nil
}

// signed makes a message of data for a subject.
func (h *Hub) signed(subject string, data []byte) (*nats.Msg, error) {
	sig, err := sign(h.key, subject, data)
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	if sig != "" {
		m.Header.Set(signatureHeader, sig)
	}
	return m, err
}

// sealed is a signed value where there are no headers.
type sealed struct {
	Value     []byte `json:"value"`
	Signature string `json:"signature,omitempty"`
}

func (h *Hub) seal(subject string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sig, err := sign(h.key, subject, b)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed{b, sig})
}

// unseal reads a signed value into v.
func (r *Runner) unseal(subject string, data []byte, v any) error {
	var s sealed
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if err := verify(r.authority, subject, s.Value, s.Signature); err != nil {
		return err
	}
	return json.Unmarshal(s.Value, v)
}

// publicKey is that of the authority of an invitation.
func (i Invitation) publicKey() (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(i.Authority))
	if block == nil {
		return nil, errors.New("the invitation has no certificate of an authority")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the invitation's authority has another kind of key than netsplit makes")
	}
	return key, nil
}
