package lab

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// halfDead has the program end its first thread alone: its process is a zombie that has all
// its files.
const halfDead = "NETSPLIT_LAB_HALF_DEAD"

func init() {
	if os.Getenv(halfDead) == "" {
		return
	}
	runtime.LockOSThread()
	go time.Sleep(time.Minute)
	time.Sleep(50 * time.Millisecond)
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// TestAProcessHasEndedOnceItsLastThreadHas: until then it has its files open.
func TestAProcessHasEndedOnceItsLastThreadHas(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), halfDead+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := findProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); p.alive() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if p.alive() || p.ended() {
		t.Errorf("its first thread has ended: alive %t, ended %t", p.alive(), p.ended())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !p.ended() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if !p.ended() { // a zombie of one thread
		t.Error("it was killed and has not ended")
	}
	_ = cmd.Wait()
	if !p.ended() {
		t.Error("it is gone and has not ended")
	}
}
