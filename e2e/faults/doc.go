// Package faults tests message faults end to end, on either transport of the gate:
// what the receiving program printed is compared with what the record says. It
// holds tests only.
package faults
