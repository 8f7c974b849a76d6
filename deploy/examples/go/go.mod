module example.com/tests

go 1.26.0

require netsplit v0.0.0

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

// Your copy of netsplit's repository.
replace netsplit => ../../..
