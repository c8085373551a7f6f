// Package control is the team's supervisor as a process: its unix socket, how it
// is started on demand, and the client.
//
// There is one supervisor per team, by a kernel lock (supervisor.lock, flock)
// that it holds for life. Whoever needs it dials its socket; where nobody answers
// and starting is wanted, it takes the starting lock, dials once more, starts
// "teamctl supervise" in a session of its own and waits for a line on a pipe that
// says that the socket listens. The supervisor takes the kernel lock before it
// touches the socket, so a loser never unlinks the winner's.
//
// The socket speaks HTTP/1.1 with JSON bodies; the routes are one literal map in
// server.go. It lies in a 0700 directory, is 0600, and takes only peers of our own
// uid. An error is the JSON of team.Error with a status that follows its code.
package control
