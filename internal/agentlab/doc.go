// Package agentlab has the agent CLIs that teamctl is tried with, and a home for
// them: an empty one with the few files of configuration that a person would have,
// a repository, and a model on loopback instead of a provider.
//
// The CLIs are the real programs, in the directory that scripts/test-clients has
// installed them in, or the stand-ins of internal/fakecli under their names: both
// are run by the same command lines. Nothing outside of the home is read or written,
// and everything that runs in it can be found by its HOME (Reap).
package agentlab
