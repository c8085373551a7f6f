// Package environ reads what other processes were executed with.
package environ
