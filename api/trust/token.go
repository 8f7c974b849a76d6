package trust

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// TokenEnv is the environment variable that holds a token.
const TokenEnv = "NETSPLIT_TOKEN"

// minToken is the least length of a token: 16 random bytes in hex have 32 characters,
// and no word that somebody guesses has half as many.
const minToken = 16

const makeToken = "make one with: (umask 077; head -c 24 /dev/urandom | base64 > FILE)"

// LoadToken reads a token from the file, or, if that is "", from the
// environment. No token at all is no error. The file must be the caller's own
// and closed to everybody else.
func LoadToken(file string) (string, error) {
	token, from := os.Getenv(TokenEnv), TokenEnv
	if file != "" {
		b, err := readSecret(file)
		if err != nil {
			return "", err
		}
		token, from = string(b), file
	}
	token = strings.TrimSpace(token)
	if (token != "" || file != "") && len(token) < minToken {
		return "", fmt.Errorf("the token in %s has %d characters, want at least %d: %s", from, len(token), minToken, makeToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token in %s has characters that a header cannot carry: %s", from, makeToken)
	}
	return token, nil
}

// maxSecret bounds the file of a token.
const maxSecret = 4 << 10

// readSecret reads a file that nobody but its owner, the caller, can read.
func readSecret(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hang
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	switch owner := ownerOf(st); {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("token file %s is no regular file", file)
	case owner != os.Geteuid():
		return nil, fmt.Errorf("token file %s belongs to user %d, not to user %d who runs this command: copy it to a file of your own, mode 600", file, owner, os.Geteuid())
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("token file %s has mode %03o, so other users can use it: chmod 600 %s, and if others may have read it, replace the token", file, st.Mode().Perm(), file)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(b) > maxSecret {
		err = errors.New("it is too large for a token")
	}
	if err != nil {
		return nil, fmt.Errorf("read the token in %s: %w", file, err)
	}
	return b, nil
}

func ownerOf(st os.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
