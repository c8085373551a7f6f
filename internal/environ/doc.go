// Package environ reads the environment with which other processes were
// executed.
package environ
