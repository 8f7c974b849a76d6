package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// On a remote host a process is held by three things. launch runs it there, in a
// session of its own whose number it writes to Spec.Session. Signals go there by a
// command of their own, which reads that number. And a process without input is
// watched over: when the connection ends, as it does when we die, what is left of
// the session is killed. One with input is told by the end of that.

// thereLimit is how long a command that signals a remote process may take, and
// lingerLimit how long ssh may take to tell how a process ended that was killed.
const (
	thereLimit  = 20 * time.Second
	lingerLimit = 2 * time.Second
)

// What the scripts below end with beside a command's own status. ssh ends with 255
// when the connection breaks; a command that does, with 254.
const (
	notThere   = 3 // the session has no process, or there never was one
	undying    = 4
	brokenSSH  = 255
	waitRounds = 50 // of 0.1 s, for a process that is being started
)

// members are functions in POSIX shell. find reads the number of the session from
// $file, waiting for it in $rounds; a process of that number that began at another
// time is a stranger's. members lists what lives of it, end kills all of that. The
// fields of /proc/PID/stat are counted from the third here (proc_pid_stat(5)).
const members = `
find() {
	until [ -s "$file" ]; do
		[ "$rounds" -gt 0 ] || exit 3
		rounds=$((rounds - 1))
		sleep 0.1 || sleep 1
	done 2>/dev/null
	read -r id began <"$file"
	stat=
	{ IFS= read -r stat <"/proc/$id/stat"; } 2>/dev/null
	set -- ${stat##*) }
	[ $# -lt 20 ] || [ "${20}" = "$began" ] || exit 3
}
members() {
	left=
	for m in /proc/[0-9]*; do
		stat=
		{ IFS= read -r stat <"$m/stat"; } 2>/dev/null
		set -- ${stat##*) }
		[ $# -ge 20 ] && [ "$1" != Z ] && [ "$1" != X ] && { [ "$3" = "$id" ] || [ "$4" = "$id" ]; } && left="$left ${m#/proc/}"
	done
}
end() {
	tries=0
	while members; [ -n "$left" ]; do
		[ $tries -lt 100 ] || exit 4
		kill -s KILL -- "-$id"
		kill -s KILL $left
		tries=$((tries + 1))
		sleep 0.1 || sleep 1
	done 2>/dev/null
}
`

// begin is what runs in the new session: it writes down who it is and becomes the
// command.
const begin = `
IFS= read -r stat <"/proc/$$/stat"
began() { set -- ${stat##*) }; echo "${20}"; }
echo "$$ $(began)" >"$0.new" && mv "$0.new" "$0" && exec env "$@"`

// launch has as its arguments begin, the working directory, the session file,
// "input" or nothing, "sweep" or nothing, and then the environment and the command.
// setsid is no process group's leader here, so it does not fork.
const launch = members + `
begin=$1 dir=$2 file=$3 input=$4 sweep=$5 rounds=50
shift 5
mkdir -p "$dir" "${file%/*}" && cd "$dir" || exit 125
exec 4>&2 2>/dev/null
watch=
if [ -z "$input" ]; then
	exec 3<&0 </dev/null
	(
		find
		while IFS= read -r line; do :; done
		trap "" TERM
		end
	) <&3 >/dev/null 4>&- &
	watch=$!
	exec 3<&-
fi
setsid sh -c "$begin" "$file" "$@" 2>&4 4>&-
status=$?
[ -z "$watch" ] || kill "$watch"
if [ -n "$sweep" ] && [ -s "$file" ]; then
	find
	end
fi
[ $status != 255 ] || status=254
exit $status
`

// signals has as its arguments the session file, the rounds to wait for it, and
// names of signals; kills the first two.
const (
	signals = members + `
file=$1 rounds=$2
shift 2
find
members
[ -n "$left" ] || exit 3
for s in "$@"; do
	kill -s "$s" -- "-$id" || exit 1
done
`
	kills = members + `
file=$1 rounds=$2
find
end
`
)

func (s Spec) launched() ([]string, error) {
	if s.Dir == "" || s.Session == "" {
		return nil, errors.New("a process on a remote host needs a folder and a session file there")
	}
	flag := func(on bool, name string) string {
		if on {
			return name
		}
		return ""
	}
	words := append([]string{"sh", "-c", launch, "netsplit", begin, s.Dir, s.Session, flag(s.Input, "input"), flag(s.Sweep, "sweep")}, s.Env...)
	return s.Host.Argv(append(words, s.Argv...)...), nil
}

// errNotThere says that nothing of a process is left on its remote host.
var errNotThere = errors.New("it has ended")

// there runs a script about the process's session on its remote host.
func (p *Proc) there(script string, args ...string) error {
	rounds := 0
	select {
	case <-p.exited:
		if p.status.Lost {
			rounds = waitRounds
		}
	default:
		rounds = waitRounds
	}
	words := append([]string{"sh", "-c", script, "netsplit", p.spec.Session, strconv.Itoa(rounds)}, args...)
	_, err := Output(context.Background(), p.spec.Host.Argv(words...), thereLimit)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch exit.ExitCode() {
		case notThere:
			return errNotThere
		case undying:
			return errors.New("processes of it do not die")
		case brokenSSH:
			return errors.New("the host cannot be reached: " + end(err.Error()))
		}
	}
	if err != nil {
		return errors.New(end(err.Error()))
	}
	return nil
}

// end is what became of a command, without its words: the script is of no use.
func end(said string) string {
	if i := strings.LastIndex(said, "': "); i >= 0 {
		said = said[i+len("': "):]
	}
	return said
}

// signalThere sends signals to the process group on the remote host.
func (p *Proc) signalThere(names ...string) error {
	if err := p.there(signals, names...); err != nil {
		return fmt.Errorf("host %s: signal %s to %s: %w", p.spec.Host.Name, strings.Join(names, ", "), p.spec.Argv[0], err)
	}
	return nil
}

// endThere kills all of the process's session on the remote host, and waits a
// moment for ssh to tell how it ended. On an error some of it may still run there,
// unless its connection lives: that is closed next.
func (p *Proc) endThere() error {
	p.mu.Lock()
	gone := p.gone
	p.mu.Unlock()
	select {
	case <-p.exited:
		gone = gone || p.spec.Sweep && !p.status.Lost
	default:
	}
	if gone {
		return nil
	}
	if err := p.there(kills); err != nil && !errors.Is(err, errNotThere) {
		return fmt.Errorf("%s may still run there: %w", p.spec.Argv[0], err)
	}
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	select {
	case <-p.exited:
	case <-time.After(lingerLimit):
	}
	return nil
}
