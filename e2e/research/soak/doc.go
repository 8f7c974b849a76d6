// Command soak keeps a daemon busy for a long time and disturbs it: campaigns in labs follow one
// another, clients ask the API at an even pace, a Prometheus scrapes it, a browser has the page open,
// and the daemon and runners are killed again and again. At
// the end it says what was lost, how soon the daemon was back, how long answers took, and how
// memory and open files grew. It exits with 1 if a result was lost or something was left behind.
//
// It needs root; scripts/soak-service.sh builds and runs it.
package main
