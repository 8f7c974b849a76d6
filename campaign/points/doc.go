// Package points asks recorded clean runs which faults a search could make, and which of them
// policies keep. It makes no run.
package points
