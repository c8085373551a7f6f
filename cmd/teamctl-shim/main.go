// Command teamctl-shim is the parent process of one agent, and the writer of one agent's log. A
// team's supervisor uses it if it is beside teamctl and has the same bundle.Version; otherwise
// teamctl does the same work itself, with a slower start and more memory. It links neither SQLite
// nor a command line nor HTTP.
package main

import (
	"os"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/shim"
)

func main() { os.Exit(shim.SmallMain(os.Args[1:], pty.Host())) }
