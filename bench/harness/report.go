package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Case is a row of a table: what is measured, and how.
type Case struct {
	Name string
	// Run measures once; i counts from 0. Timed makes one of a function that is measured as a whole.
	Run func(i int) (time.Duration, error)
	// AtMost is the limit of the median, 0 for none.
	AtMost time.Duration
}

// Timed measures how long a function takes.
func Timed(do func(i int) error) func(i int) (time.Duration, error) {
	return func(i int) (time.Duration, error) {
		begin := time.Now()
		err := do(i)
		return time.Since(begin), err
	}
}

// Measure measures each case several times, in turns, so that a busy moment of the machine affects all of them. It
// prints a table with the ratios of the medians to the first case, which is the baseline.
func Measure(title string, times int, cases ...Case) error {
	took := make([][]time.Duration, len(cases))
	for i := range times {
		for n, c := range cases {
			one, err := c.Run(i)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			took[n] = append(took[n], one)
		}
	}
	fmt.Printf("\n%-70s %11s %11s %8s %11s\n",
		fmt.Sprintf("%s (%d times)", title, times), "median", "p99", "ratio", "difference")
	base := Median(took[0])
	for n, c := range cases {
		median, limit := Median(took[n]), ""
		if c.AtMost > 0 {
			limit = Limit(median <= c.AtMost, "at most "+MS(c.AtMost))
		}
		fmt.Printf("%-70s %11s %11s %8.2f %11s%s\n", c.Name, MS(median), MS(quantile(took[n], 0.99)),
			float64(median)/float64(max(base, 1)), MS(median-base), limit)
	}
	return nil
}

// Row prints a row with one value, and notes such as a Ratio or a Limit.
func Row(what, value string, notes ...string) {
	fmt.Printf("%-70s %11s%s\n", what, value, strings.Join(notes, ""))
}

// Ratio formats the ratio to a baseline as a note.
func Ratio(value, baseline float64) string {
	return fmt.Sprintf("  ratio %.2f", value/max(baseline, 1e-9))
}

// Limit formats a limit as a note, and marks it if it is not met.
func Limit(met bool, limit string) string {
	if met {
		return "  (to be " + limit + ")"
	}
	return "  ! (to be " + limit + ")"
}

// Median returns the median; of an even number of values, the larger one in the middle.
func Median(values []time.Duration) time.Duration { return quantile(values, 0.5) }

func quantile(values []time.Duration, q float64) time.Duration {
	values = slices.Sorted(slices.Values(values))
	return values[int(q*float64(len(values)))]
}

// MS prints a duration in milliseconds, a short one with fractions.
func MS(d time.Duration) string {
	if d.Abs() < 100*time.Millisecond {
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// MB prints bytes in megabytes.
func MB(bytes float64) string { return fmt.Sprintf("%.2f MB", bytes/1e6) }
