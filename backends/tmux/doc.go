// Package tmux runs teammates in tmux panes. The pane's process is the shim
// (backends/shim), never a shell, and nothing is typed to start it.
//
// # Which server
//
// Inside tmux (Place.TMUX, verified to be a living server that has the person's
// pane) the person's window is split, or a window is made in their session: only
// pane options and options of that one window are set there, what we set is taken
// back with the last teammate, and no client stays attached. Otherwise the team
// has a server of its own: a socket in the team's runtime directory, our own
// configuration, the person's never loaded. Its first pane is the lead's.
//
// # What is true
//
// tmux only shows things. That an agent lives or has died is learned from the
// shim by pidfd and from exit.json: before 3.6 tmux loses the death of a pane's
// process, kill-pane tells nobody, and a pane may read as dead while its process
// lives. Ids (%3) restart with a new server, so none is used before the server's
// pid and start time were compared.
//
// # How it is asked
//
// The private server is asked through one control-mode client per supervisor:
// requests are pipelined, answers matched by their guards. The person's server is
// asked by one tmux process per request: a control client would be a visible
// client of their session. In control mode a newline ends a command, so every
// argument is quoted (quote) and data goes through a buffer, never through keys.
// Launches that wait for a place in the private server's windows are placed
// together: three questions for all of them, three more for each further window.
package tmux
