// Package script plays scripted tests, as in NEAT (OSDI'18 §7.1): partitions, crashes,
// pauses, operations of several clients and assertions, one after the other, on a running
// system.
//
// In Go a script is a function that takes a *Script (script.go). Test plays it once in a Go
// test, Play several times. If TestMain calls Main, the test binary is also the agent on the
// hosts, and nothing else is needed:
//
//	func TestMain(m *testing.M) { os.Exit(script.Main(m.Run)) }
//
//	func TestSplitBrain(t *testing.T) {
//		script.Test(t, script.Config{Target: "redis-sentinel"}, func(s *script.Script) {
//			old := s.Role("master")
//			cut := s.Isolate(old, "c1")
//			…
//		})
//	}
//
// A script can also be a file (file.go), whose steps call the same functions
// (interpret.go). Every play leaves the record of a run. A failed assertion is a failure of
// that run, and it is judged from the record alone.
package script
