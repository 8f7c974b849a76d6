// Package script is for scripted tests, as in NEAT (OSDI'18 §7.1): a partition, a
// crash, a pause, the operations of several clients and assertions, one after
// the other, on a system that runs.
//
// In Go a script is a function that takes a *Script (script.go). Test plays one
// from a Go test, Play as often as one likes. A TestMain that calls Main lets
// the test binary be the agent on the hosts, so that nothing else is needed:
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
// For people who write no Go it is a file (file.go), whose steps call the same
// functions (interpret.go). Every play leaves the record of a run; what an
// assertion finds is a failure of that run, judged from the record alone.
package script
