package web

import (
	"strings"

	"rsc.io/qr"
)

// QR returns a text as a QR code for a terminal, two rows a line, with its quiet zone. Dark modules
// are spaces on light ones, which any camera reads on a dark terminal as well as on a light one.
func QR(text string) (string, error) {
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return "", err
	}
	const quiet = 2
	light := func(x, y int) bool { return x < 0 || y < 0 || x >= c.Size || y >= c.Size || !c.Black(x, y) }
	var b strings.Builder
	for y := -quiet; y < c.Size+quiet; y += 2 {
		for x := -quiet; x < c.Size+quiet; x++ {
			switch up, down := light(x, y), light(x, y+1) && y+1 < c.Size+quiet; {
			case up && down:
				b.WriteString("█")
			case up:
				b.WriteString("▀")
			case down:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}
