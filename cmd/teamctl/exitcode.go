package main

import "fmt"

// exitError ends the program silently with the status of another program.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
