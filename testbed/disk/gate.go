package disk

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// Config says whose operations on which files are held, and who decides them.
type Config struct {
	Host model.TestbedHost
	// Process names what is started, for FileOperation.Process.
	Process string
	// Folders hold the files. They must exist.
	Folders []string
	// Decide is called once for each event, in the order in which the kernel reports
	// them, one call at a time per gate. The operation begins when it has returned. Until
	// then every other held call of the same programs waits, even writes to sockets. So
	// Decide must not wait for anything that the program does.
	Decide func(model.FileOperation) Answer
	// Unsynced, if set, saves what a power cut restores.
	Unsynced *Unsynced
}

// Gate holds the file operations of a program, of all that it forks, and of programs
// started again by the same Argv.
type Gate struct {
	cfg   Config
	names map[int32]string

	conn   *net.UnixConn // listeners arrive here
	theirs int           // the other end; programs take a copy
	stop   [2]int        // a pipe: closing its second end ends all listeners

	serving sync.WaitGroup

	mu    sync.Mutex        // one event at a time
	known map[int]int       // process of each thread
	kinds map[string]string // of paths that came up, at most maxKinds

	errMu sync.Mutex // apart from mu: Decide may ask for Err
	err   error
}

// maxKinds bounds the cache of kinds: to find the kind of a path takes as long as the rest
// of an event.
const maxKinds = 10000

// New makes a gate. An error says why the host or the kernel cannot have one.
func New(cfg Config) (*Gate, error) {
	g, err := newGate(cfg)
	if err != nil {
		return nil, fmt.Errorf("disk gate of %s on host %s: %w", cfg.Process, cfg.Host.Name, err)
	}
	return g, nil
}

func newGate(cfg Config) (*Gate, error) {
	if cfg.Host.Remote() {
		return nil, errors.New("the host is another machine, and file operations are held on this one only: use a lab")
	}
	if err := able(); err != nil {
		return nil, err
	}
	if len(cfg.Folders) == 0 {
		return nil, errors.New("no folder is named")
	}
	g := &Gate{cfg: cfg, known: map[int]int{}, kinds: map[string]string{}}
	g.cfg.Folders = nil
	for _, f := range cfg.Folders {
		full, err := filepath.Abs(f)
		if err == nil {
			full, err = filepath.EvalSymlinks(full)
		}
		if err != nil {
			return nil, err
		}
		if full == "/" {
			return nil, errors.New("/ is every file of the host: name a folder below it")
		}
		g.cfg.Folders = append(g.cfg.Folders, full)
	}
	var err error
	if g.names, err = names(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	g.theirs = pair[1]
	ours := os.NewFile(uintptr(pair[0]), "disk gate")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		unix.Close(g.theirs)
		return nil, err
	}
	g.conn = conn.(*net.UnixConn)
	if err := unix.Pipe2(g.stop[:], unix.O_CLOEXEC); err != nil {
		g.conn.Close()
		unix.Close(g.theirs)
		return nil, err
	}
	g.serving.Go(g.accept)
	return g, nil
}

// Argv is the command that runs argv under the gate. program must call Main, which copies a
// descriptor of this process. So keep the rights of this process until program has started;
// argv may drop them, and may change its view of the file system.
func (g *Gate) Argv(program string, argv ...string) []string {
	return append([]string{program, Verb, strconv.Itoa(os.Getpid()), strconv.Itoa(g.theirs), "--"}, argv...)
}

// Err says what the gate could not see or do. The operation continued, so the run is
// unknown.
func (g *Gate) Err() error {
	g.errMu.Lock()
	defer g.errMu.Unlock()
	return g.err
}

func (g *Gate) fail(err error) {
	g.errMu.Lock()
	defer g.errMu.Unlock()
	if g.err == nil {
		g.err = fmt.Errorf("disk gate of %s on host %s: %w", g.cfg.Process, g.cfg.Host.Name, err)
	}
}

// Close ends the gate and returns Err. End the programs first: those that still run under it
// then get ENOSYS for every held call, as when this process dies.
func (g *Gate) Close() error {
	unix.Close(g.stop[1])
	g.conn.Close()
	g.serving.Wait()
	unix.Close(g.theirs)
	unix.Close(g.stop[0])
	return g.Err()
}

// accept takes the listener of each program that starts.
func (g *Gate) accept() {
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := g.conn.ReadMsgUnix(make([]byte, 1), oob)
		if err != nil || n == 0 {
			if err != nil && !errors.Is(err, net.ErrClosed) {
				g.fail(err)
			}
			return
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err == nil && len(messages) != 1 {
			err = fmt.Errorf("a message with %d descriptors", len(messages))
		}
		var fds []int
		if err == nil {
			fds, err = unix.ParseUnixRights(&messages[0])
		}
		if err != nil {
			g.fail(fmt.Errorf("a program started without its gate: %w", err))
			continue
		}
		for _, fd := range fds {
			g.serving.Go(func() { g.serve(listener(fd)) })
		}
	}
}

// serve answers the calls of a program and of all that it forks, until they have ended.
func (g *Gate) serve(l listener) {
	defer unix.Close(int(l))
	for {
		more, err := l.wait(g.stop[0])
		if err != nil {
			g.fail(err)
		}
		if !more {
			return
		}
		var n notification
		if err := l.receive(&n); errors.Is(err, errOver) {
			continue
		} else if err != nil {
			g.fail(err)
			return
		}
		if err := l.respond(g.answer(l, n)); err != nil && !errors.Is(err, errOver) {
			g.fail(err)
			return
		}
	}
}

// answer reads the call, has it decided and makes the response.
func (g *Gate) answer(l listener, n notification) response {
	proceed := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	c := caller{tid: int(n.tid), folders: g.cfg.Folders}
	if g.cfg.Unsynced != nil {
		if err := g.note(c, g.names[n.call], n.args); err != nil && l.waits(n.id) {
			g.fail(err)
		}
	}
	o, err := c.operation(g.names[n.call], n.args)
	if o == nil && err == nil {
		return proceed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var e model.FileOperation
	if err == nil {
		e, err = g.event(c, o)
	}
	if !l.waits(n.id) {
		return proceed // the thread is gone; its id may belong to another one now
	}
	if err != nil {
		if !refused(err) {
			g.fail(fmt.Errorf("%s of thread %d: %w", g.names[n.call], n.tid, err))
		}
		return proceed
	}
	a := g.cfg.Decide(e)
	if err := a.check(e); err != nil {
		g.fail(err)
		return proceed
	}
	if !l.waits(n.id) {
		return proceed // the decision killed the thread
	}
	if u := g.cfg.Unsynced; u != nil && (a.action == pass || a.action == short) {
		if err := u.before(c, o, func() bool { return l.waits(n.id) }); err != nil {
			g.fail(err)
		}
	}
	switch a.action {
	case fail:
		return response{id: n.id, err: -int32(a.errno)}
	case short:
		written, err := g.write(l, n.id, c, e.PID, o, a.bytes)
		var errno unix.Errno
		if errors.As(err, &errno) {
			return response{id: n.id, err: -int32(errno)}
		}
		return response{id: n.id, value: int64(written)}
	}
	return proceed // a no-op if the thread is dead
}

// note tells Unsynced of calls that sync files without naming them.
func (g *Gate) note(c caller, name string, a [6]uint64) error {
	switch name {
	case "msync":
		return g.cfg.Unsynced.synced(c, a[0], a[1])
	case "sync", "syncfs":
		g.cfg.Unsynced.allSynced()
	}
	return nil
}

// refused says whether an error in reading a call means that the kernel refuses the call,
// too, or that the call is not on a file.
func refused(err error) bool {
	for _, known := range []error{errNoEvent, unix.ENOENT, unix.ENOTDIR, unix.EFAULT, unix.ELOOP, unix.ENAMETOOLONG, unix.EBADF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (g *Gate) event(c caller, o *operation) (model.FileOperation, error) {
	e := model.FileOperation{Host: g.cfg.Host.Name, Process: g.cfg.Process, TID: c.tid, Op: o.op, Path: o.path, To: o.to, Bytes: o.bytes}
	e.Kind, e.ToKind = g.kind(c, o.path), g.kind(c, o.to)
	var err error
	e.PID, e.Thread, err = c.process(g.known)
	return e, err
}

func (g *Gate) kind(c caller, path string) string {
	folder := c.folder(path)
	if folder == "" {
		return ""
	}
	kind, ok := g.kinds[path]
	if !ok {
		kind = Kind(cmp.Or(strings.TrimPrefix(path[len(folder):], "/"), "./"))
		if len(g.kinds) == maxKinds {
			clear(g.kinds)
		}
		g.kinds[path] = kind
	}
	return kind
}

// write does a short write for the caller: the first bytes of its data. It uses the caller's own open
// file, so that position and O_APPEND apply.
func (g *Gate) write(l listener, id uint64, c caller, pid int, o *operation, bytes int) (int, error) {
	fd, err := take(pid, o.fd)
	if err != nil {
		return 0, g.failed(err)
	}
	defer unix.Close(fd)
	var data [][]byte
	for _, s := range o.data {
		s.length = min(s.length, uint64(bytes))
		b, err := c.memory(s.at, s.length)
		if err != nil {
			return 0, g.failed(err)
		}
		data = append(data, b)
		if bytes -= len(b); bytes == 0 {
			break
		}
	}
	if !l.waits(id) {
		return 0, unix.EINTR // the caller is dead
	}
	return unix.Pwritev2(fd, data, o.offset, o.flags)
}

// failed notes that an answer could not be carried out, and makes it an I/O error.
func (g *Gate) failed(err error) error {
	g.fail(fmt.Errorf("cannot write for a program: %w", err))
	return unix.EIO
}
