// Package terminal measures texts as a terminal shows them, and draws tables. It imports nothing of the project.
package terminal

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// DefaultColumns is the width of a terminal that does not know its own.
const DefaultColumns = 80

// Columns returns the width of a terminal, which may change at any time.
func Columns(file *os.File) int {
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		return columns
	}
	return DefaultColumns
}

// Is reports whether a writer is a terminal.
func Is(out any) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Width returns how many columns a text without control characters takes.
func Width(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns the text if it takes at most so many columns, else its beginning with an ellipsis.
func Cut(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	used := 1 // the ellipsis
	for i, r := range text {
		if used += runeWidth(r); used > columns {
			return text[:i] + "…"
		}
	}
	return text
}

// columnGap is how many spaces are between two columns of a table.
const columnGap = 3

// Table aligns columns of rows that come one after the other. It has the widths of the columns.
type Table []int

// Add returns lines for rows, with columns at least as wide as before. paint, if set, may add colours to a cell once
// its width is known.
func (t *Table) Add(rows [][]string, paint func(column int, cell string) string) string {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(*t) {
				*t = append(*t, 0)
			}
			(*t)[i] = max((*t)[i], Width(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		pending := 0 // spaces at the end of a line are left out
		for i, cell := range row {
			text := cell
			if paint != nil {
				text = paint(i, cell)
			}
			if cell != "" {
				out.WriteString(strings.Repeat(" ", pending) + text)
				pending = 0
			}
			pending += (*t)[i] - Width(cell) + columnGap
		}
		out.WriteString("\n")
	}
	return out.String()
}
