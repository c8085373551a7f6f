// Package childattr sets attributes of child processes that not every system
// supports.
package childattr
