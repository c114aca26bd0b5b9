package identity

import (
	"strings"
	"time"
)

// documentBytesMax bounds what is looked at as a number.
const documentBytesMax = 64

// plainDocument is a number as typed without what people put between its signs, in capital letters.
func plainDocument(text string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch r = narrow(r); r {
		case ' ', '-', '\t', '·':
			return -1
		}
		return r
	}, text))
}

// passport is a passport's number: 5 to 15 letters and digits, of any country.
func passport(text string) (number, bad string) {
	const shape = "a passport's number has 5 to 15 letters and digits"
	if len(text) > documentBytesMax {
		return "", shape
	}
	number = plainDocument(text)
	if len(number) < 5 || len(number) > 15 {
		return "", shape
	}
	for _, c := range []byte(number) {
		if !('A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return "", shape
		}
	}
	return number, ""
}

// residentID is a Chinese resident id's number (GB 11643-1999): 6 digits of the region, 8 of the date of birth, 3 of a
// sequence, and a check digit. The old ones of 15 digits, which lack the century and the check digit, become what the same
// person's new card shows, so that one person is one document.
func residentID(text string) (number, bad string) {
	if len(text) > documentBytesMax {
		return "", "a resident id has 18 digits, of which the last may be X"
	}
	number = plainDocument(text)
	if len(number) == 15 && digitsOnly(number) {
		number = number[:6] + "19" + number[6:]
		number += string(residentCheck(number))
	}
	switch {
	case len(number) != 18 || !digitsOnly(number[:17]) || number[17] != 'X' && !digitsOnly(number[17:]):
		return "", "a resident id has 18 digits, of which the last may be X"
	case residentCheck(number[:17]) != number[17]:
		return "", "the resident id has a mistake in it: its check digit does not fit"
	case !residentRegions[number[:2]]:
		return "", "the resident id has a mistake in it: there is no such region"
	case !plausibleBirth(number[6:14]):
		return "", "the resident id has a mistake in it: its date of birth cannot be"
	}
	return number, ""
}

func digitsOnly(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// residentCheck is the check digit of 17 digits (ISO 7064, MOD 11-2).
func residentCheck(digits string) byte {
	sum := 0
	for i, c := range []byte(digits) {
		weight := 1 << (len(digits) - i) % 11
		sum += int(c-'0') * weight
	}
	return "10X98765432"[sum%11]
}

// residentRegions are the first two digits that there are: provinces, Hong Kong, Macau, Taiwan, and foreigners with the
// right of permanent residence (9).
var residentRegions = func() map[string]bool {
	all := map[string]bool{}
	for _, region := range strings.Fields("11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83 91 92 93") {
		all[region] = true
	}
	return all
}()

// plausibleBirth takes a day that was, from 1900 on; today is wherever it is latest.
func plausibleBirth(date string) bool {
	day, err := time.Parse("20060102", date)
	return err == nil && day.Year() >= 1900 && day.Before(time.Now().UTC().Add(14*time.Hour))
}
