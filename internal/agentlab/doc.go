// Package agentlab has the agent CLIs for tests of teamctl, and a home directory for them: an
// empty one with the few configuration files that a user would have, a repository, and a model on
// loopback instead of a provider.
//
// The CLIs are the real programs, in the directory in which scripts/test-clients has installed
// them, or the stand-ins of internal/fakecli under their names: both are run by the same command
// lines. Nothing outside the home directory is read or written, and all processes in it can be
// found by their HOME (Reap).
package agentlab
