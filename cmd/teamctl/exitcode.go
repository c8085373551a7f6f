package main

import "fmt"

// exitError ends the program with a status of another's choosing, and says nothing.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
