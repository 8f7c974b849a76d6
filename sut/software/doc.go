// Package software fetches the jars, agents and Java runtimes that targets
// run, and keeps them in a cache outside the checkout.
//
// What a release consists of is data: catalog/<product>.yaml. Which bytes they
// must be is data too: catalog/<product>-<release>.sha256 lists every file of
// the resulting set as sha256sum prints it, so that "sha256sum -c" works in the
// set's directory. The ordinary clients fetch (mvn, pip, go), with the mirrors
// and proxies that the user told them; the list decides whether what came is
// taken. A Go program is built here, so the list holds what it was built from.
// A set appears in the cache whole or not at all.
package software
