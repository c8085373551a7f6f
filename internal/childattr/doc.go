// Package childattr has attributes of child processes that not every system knows.
package childattr
