// Package childattr starts child processes with attributes that not every system
// supports.
package childattr
