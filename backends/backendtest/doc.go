// Package backendtest is the conformance suite of the backends, each of which
// passes Exercise. The test binary itself runs as the agents; its TestMain
// calls Main first.
package backendtest
