package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsplit/api/trust"
)

// level is what somebody may do.
type level int

const (
	nobody   level = iota
	stranger       // known, and not allowed in
	reader         // may look
	operator       // may look, write notes, and end or pause what runs
	starter        // may do that, and start and schedule campaigns on targets that are there
	owner          // may do everything
)

// Access decides who may use the API, and at which level. On the Unix socket the kernel names
// the user: the daemon's user and root are owner, others are refused. Over TCP the credential
// decides. It may be used by several goroutines.
type Access struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	token secret
	file  string // of the read token
	url   string // where browsers find the daemon

	mu   sync.Mutex
	read secret
	tabs tickets // sessions: cookies of browsers that opened the address of a page; they only read
	// pages are one-time codes of these addresses, by level.
	pages map[level]tickets
	// controls are tokens of pages that may do more, by level. Such a token is in the fragment of
	// the address, which browsers do not send. It is no cookie, because browsers send cookies to
	// all ports of the host.
	controls map[level]tickets
}

// secret is the hash of a secret, so that comparing takes the same time
// whatever its length; the zero value is none.
type secret [sha256.Size]byte

func secretOf(s string) secret { return sha256.Sum256([]byte(s)) }

func (s secret) is(other secret) bool {
	return s != secret{} && subtle.ConstantTimeCompare(s[:], other[:]) == 1
}

const (
	readTokenFile = "read-token"
	// pageLimit is how long an address that access page gave can be opened.
	pageLimit = 5 * time.Minute
	// tabLimit is how long a browser is let in after that.
	tabLimit = 12 * time.Hour
)

// NewAccess takes the bearer token that allows everything, "" for none, and
// the folder, mode 700, that keeps the read-only token. url is where browsers
// reach the daemon, "" for nowhere.
func NewAccess(token, dir, url string) (*Access, error) {
	a := &Access{file: filepath.Join(dir, readTokenFile), url: url, tabs: tickets{},
		pages:    map[level]tickets{reader: {}, operator: {}, starter: {}},
		controls: map[level]tickets{operator: {}, starter: {}}}
	if token != "" {
		a.token = secretOf(token)
	}
	old, err := trust.LoadToken(a.file)
	switch {
	case err == nil:
		a.read = secretOf(old)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("api: the existing read-only token: %w", err)
	}
	return a, nil
}

func (a *Access) clock() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// readToken returns the read-only token, made if there is none yet or another is wanted.
func (a *Access) readToken(other bool) (string, error) {
	if a.file == "" {
		return "", errors.New("this daemon keeps no tokens")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read != (secret{}) && !other {
		return trust.LoadToken(a.file)
	}
	token := rand.Text()
	tmp := a.file + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("keep the read-only token: %w", err)
	}
	if err := os.WriteFile(tmp, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the read-only token: %w", err)
	}
	if err := os.Rename(tmp, a.file); err != nil {
		return "", fmt.Errorf("keep the read-only token: %w", err)
	}
	a.read = secretOf(token)
	return token, nil
}

// page returns an address that opens the page once, in a browser that is then
// let in as a reader; the page itself may do what the level allows.
func (a *Access) page(may level) (string, time.Time, error) {
	if a.url == "" {
		return "", time.Time{}, errors.New("this daemon has no address for a browser")
	}
	code := rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	end := a.clock().Add(pageLimit)
	address := a.url + enterPath + "?" + url.Values{"code": {code}}.Encode()
	a.pages[may].add(code, a.clock(), end)
	switch may {
	case operator:
		address += "#controls=" + controlOf(code)
	case starter:
		address += "#start=" + controlOf(code)
	}
	return address, end, nil
}

// controlOf is the credential of a page that a code let in, and is of use once it has.
func controlOf(code string) string {
	sum := sha256.Sum256([]byte("netsplit controls " + code))
	return hex.EncodeToString(sum[:])
}

const enterPath = "/access"

func (s *server) enter(w http.ResponseWriter, r *http.Request) {
	a := s.Access
	code := r.URL.Query().Get("code")
	a.mu.Lock()
	now := a.clock()
	good := false
	for may, pages := range a.pages {
		if r.Method == http.MethodGet && pages.take(code, now) {
			good = true
			if may != reader {
				a.controls[may].add(controlOf(code), now, now.Add(tabLimit))
			}
		}
	}
	tab := rand.Text()
	if good {
		a.tabs.add(tab, now, now.Add(tabLimit))
	}
	a.mu.Unlock()
	if !good {
		s.unauthorized(w, "This address was used before, or is older than 5 minutes. Get another one with netsplit access page.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: tab, Path: "/", MaxAge: int(tabLimit / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// cookieName has the port in it: browsers give the cookies of one port to all
// others of the host. That is also why a cookie lets nobody do more than read.
func cookieName(r *http.Request) string {
	port := 0
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		port = a.Port
	}
	return "netsplit-" + strconv.Itoa(port)
}

type peerKey struct{}

// withPeer notes who is at the other end of a connection within this machine.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*trust.Conn); ok {
		return context.WithValue(ctx, peerKey{}, c.Peer)
	}
	return ctx
}

func (a *Access) of(r *http.Request) level {
	if peer, ok := r.Context().Value(peerKey{}).(int); ok {
		if trust.Own(peer) {
			return owner
		}
		return stranger
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if auth := r.Header.Get("Authorization"); auth != "" {
		scheme, given, _ := strings.Cut(auth, " ")
		given = strings.TrimSpace(given)
		got := secretOf(given)
		// All are compared always: how long it takes tells nothing.
		full, read := a.token.is(got), a.read.is(got)
		operate, start := a.controls[operator].has(given, a.clock()), a.controls[starter].has(given, a.clock())
		switch {
		case !strings.EqualFold(scheme, "Bearer"):
			return nobody
		case full:
			return owner
		case start:
			return starter
		case operate:
			return operator
		case read:
			return reader
		}
		return nobody
	}
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if a.tabs.has(c.Value, a.clock()) {
			return reader
		}
	}
	return nobody
}

// maxTickets bounds what is remembered of each kind.
const maxTickets = 100

// tickets are secrets that expire, by hash: finding one takes no longer the
// more of it is right.
type tickets map[secret]time.Time

func (t tickets) add(s string, now, end time.Time) {
	first := secret{}
	for k, e := range t {
		if !now.Before(e) {
			delete(t, k)
		} else if first == (secret{}) || e.Before(t[first]) {
			first = k
		}
	}
	if len(t) >= maxTickets {
		delete(t, first)
	}
	t[secretOf(s)] = end
}

func (t tickets) has(s string, now time.Time) bool {
	end, ok := t[secretOf(s)]
	return ok && now.Before(end)
}

// take says whether s is valid, and deletes it: it works once.
func (t tickets) take(s string, now time.Time) bool {
	ok := t.has(s, now)
	delete(t, secretOf(s))
	return ok
}
