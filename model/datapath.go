package model

import (
	"fmt"
	"strconv"
	"strings"
)

// String is the id as Open vSwitch prints it: 16 lower-case hex digits.
func (d DatapathID) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// ParseDatapathID reads 1 to 16 hex digits, with or without 0x or colons.
func ParseDatapathID(s string) (DatapathID, error) {
	h := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "0x"), ":", "")
	v, err := strconv.ParseUint(h, 16, 64)
	if err != nil || h == "" || len(h) > 16 {
		return 0, fmt.Errorf("datapath id %q: want 1 to 16 hex digits, as ovs-vsctl get bridge BR datapath_id prints them", s)
	}
	return DatapathID(v), nil
}

// MarshalText writes the id as String does.
func (d DatapathID) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the id as ParseDatapathID does.
func (d *DatapathID) UnmarshalText(b []byte) error {
	v, err := ParseDatapathID(string(b))
	*d = v
	return err
}
