// Command lines is a target for tests of message faults: a receiver that prints
// each line as it gets it, by UDP and by TCP, and a talker that sends known lines
// to it at known times.
package main
