package tui

// ASCII returns a line with signs of ASCII in place of those of the screens, as wide as before.
func ASCII(line string) string { return asciiOnly(line) }
