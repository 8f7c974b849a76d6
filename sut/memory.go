package sut

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"netsplit/model"
)

// CheckMemory compares what the target says it takes with what the machine has
// free (MemAvailable of /proc/meminfo, which counts caches that can be
// dropped). The note says both; it is "" where the target states nothing.
func CheckMemory(t *model.Target) (note string, err error) {
	if t.Memory == 0 {
		return "", nil
	}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", fmt.Errorf("see how much memory is free: %w", err)
	}
	return checkMemory(t, b)
}

func checkMemory(t *model.Target, meminfo []byte) (string, error) {
	s := bufio.NewScanner(bytes.NewReader(meminfo))
	for s.Scan() {
		var kb int
		if n, _ := fmt.Sscanf(s.Text(), "MemAvailable: %d kB", &kb); n != 1 {
			continue
		}
		free := kb / 1024
		if free < t.Memory {
			return "", fmt.Errorf("target %s takes %d MB of memory and this machine has %d MB free: end other programs, run fewer labs at once, or take a machine with more", t.Name, t.Memory, free)
		}
		return fmt.Sprintf("memory: %d MB needed, %d MB free", t.Memory, free), nil
	}
	return "", fmt.Errorf("see how much memory is free: /proc/meminfo has no MemAvailable: take a Linux from 3.14 on")
}
