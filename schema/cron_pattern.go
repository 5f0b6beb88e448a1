package schema

import (
	"fmt"
	"strings"
)

// cronPattern is a pattern of the schedules that ParseCron takes, for the published JSON Schema. It lists each
// range whose end is not before its beginning; days that never come, such as 30 February, it takes.
func cronPattern() string {
	months := []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	days := []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	fields := []string{
		cronField(
			0,
			59,
			nil,
		), cronField(0, 23, nil), cronField(1, 31, nil), cronField(1, 12, months), cronField(0, 6, days),
	}
	const some, nonzero = "[0-9]{1,5}", "0*[1-9][0-9]{0,4}"
	every := fmt.Sprintf("%[2]sh(%[1]sm)?(%[1]ss)?|(0+h)?%[2]sm(%[1]ss)?|(0+h)?(0+m)?%[2]ss", some, nonzero)
	return "^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|@every (" + every + ")|" +
		strings.Join(fields, "[ \t]+") + ")$"
}

// cronField is a pattern of a list of values from lo to hi and of ranges of them, in digits or by name.
func cronField(lo, hi int, names []string) string {
	items := []string{`\*`}
	for i := lo; i <= hi; i++ {
		items = append(items, digits(i)+"(-("+from(i, hi)+"))?")
	}

	for i, name := range names {
		later := make([]string, 0, len(names))
		for _, other := range names[i:] {
			later = append(later, folded(other))
		}

		items = append(items, folded(name)+"(-("+strings.Join(later, "|")+"))?")
	}

	item := "(" + strings.Join(items, "|") + ")(/(0?[1-9]|[1-9][0-9]))?"
	return item + "(," + item + ")*"
}

func digits(n int) string {
	if n < 10 {
		return fmt.Sprintf("0?%d", n)
	}
	return fmt.Sprint(n)
}

// from is a pattern of the numbers from lo to hi, both below 100.
func from(lo, hi int) string {
	var parts []string
	for lo <= hi {
		end := min(hi, lo-lo%10+9)
		class := fmt.Sprintf("[%d-%d]", lo%10, end%10)
		if lo >= 10 {
			class = fmt.Sprint(lo/10) + class
		} else {
			class = "0?" + class
		}

		parts = append(parts, class)
		lo = end + 1
	}
	return strings.Join(parts, "|")
}

// folded is a pattern of a word in any case.
func folded(word string) string {
	var b strings.Builder
	for _, c := range word {
		fmt.Fprintf(&b, "[%c%s]", c, strings.ToLower(string(c)))
	}
	return b.String()
}
