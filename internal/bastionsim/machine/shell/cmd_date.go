package shell

import (
	"fmt"
	"strings"
	"time"
)

var strftimes = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
	'Z': "MST", 'z': "-0700", 'p': "PM", 'I': "03", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'e': "_2",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'r': "03:04:05 PM", 'N': "000000000",
}

// strftime formats a time by a format of date(1).
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		for (format[i] == '-' || format[i] == '_' || format[i] == '3') && i+1 < len(format) {
			i++
		}
		switch c := format[i]; {
		case c == 's':
			fmt.Fprint(&b, t.Unix())
		case c == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case c == 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case c == 'u':
			fmt.Fprint(&b, (int(t.Weekday())+6)%7+1)
		case c == 'w':
			fmt.Fprint(&b, int(t.Weekday()))
		case c == 'n':
			b.WriteByte('\n')
		case c == 't':
			b.WriteByte('\t')
		case c == '%':
			b.WriteByte('%')
		case strftimes[c] != "":
			b.WriteString(t.Format(strftimes[c]))
		default:
			b.WriteString("%" + string(c))
		}
	}
	return b.String()
}
