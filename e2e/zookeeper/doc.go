// Package zookeeper tests a short campaign on a Java system from the catalogue:
// its software comes by Maven once and from the cache from then on.
package zookeeper
