// Package points asks recorded runs which faults a search could make, and sequences of two, and
// which of them policies keep. It makes no run.
package points
