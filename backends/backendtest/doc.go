// Package backendtest is the conformance suite of the backends: every one of
// them passes Exercise. The agents are the test binary itself; its TestMain hands
// over to Main first.
package backendtest
