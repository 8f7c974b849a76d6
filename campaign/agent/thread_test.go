package agent

import "runtime"

func lockThread() { runtime.LockOSThread() }
