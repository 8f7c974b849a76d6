// Package state turns messages and probe answers into observations of node
// variables, keeps the latest value of each, and pairs the values of the two
// ends of a message into samples for the miner.
package state
