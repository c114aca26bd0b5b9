package eventfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bojanz/currency"

	"onsale/internal/ledger"
)

// The methods below read plain values; each adds a problem that names key, line and mend where one is not right.

func (o *object) str(key, fallback string) string {
	if text, _, ok := o.text(key); ok {
		return strings.TrimSpace(text)
	}
	return fallback
}

// required is str for a key that must be there.
func (o *object) required(key, mend string) string {
	if !o.has(key) {
		o.report.Add(o.line, o.path+key, "is missing: %s", mend)
		return ""
	}
	return o.str(key, "")
}

func (o *object) flag(key string, fallback bool) bool {
	text, line, ok := o.text(key)
	switch {
	case !ok:
		return fallback
	case text == "true":
		return true
	case text == "false":
		return false
	}
	o.report.Add(line, o.path+key, "%.40q must be true or false", text)
	return fallback
}

func (o *object) number(key string, fallback int) int {
	text, line, ok := o.text(key)
	if !ok {
		return fallback
	}
	return o.toNumber(key, text, line, fallback)
}

func (o *object) toNumber(key, text string, line, fallback int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000_000 {
		o.report.Add(line, o.path+key, "%.40q must be a whole number from 0 on", text)
		return fallback
	}
	return n
}

func (o *object) duration(key string, fallback ledger.Duration) ledger.Duration {
	text, line, ok := o.text(key)
	if !ok {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Millisecond != 0 {
		o.report.Add(line, o.path+key, "%.40q must be a length of time, such as 90s, 10m or 24h", text)
		return fallback
	}
	return ledger.Duration(d.Milliseconds())
}

var decimal = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?$`)

// money is a decimal amount of the file's currency in its minor units: two for EUR, none for JPY, three for KWD.
func (o *object) money(key, currencyCode string) int64 {
	text, line, ok := o.text(key)
	if !ok {
		return 0
	}
	minor, err := parseMoney(text, currencyCode)
	if err != nil {
		o.report.Add(line, o.path+key, "%s", err)
	}
	return minor
}

func parseMoney(text, currencyCode string) (int64, error) {
	digits, known := currency.GetDigits(currencyCode)
	if !known {
		return 0, nil // said once, of the currency itself
	}
	example := "49"
	if digits > 0 {
		example += "." + strings.Repeat("0", int(digits)-1) + "5"
	}
	if !decimal.MatchString(text) {
		return 0, fmt.Errorf("%.40q must be an amount of %s such as %s, without sign, currency or thousands separators", text, currencyCode, example)
	}
	amount, err := currency.NewAmount(text, currencyCode)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not an amount of %s", text, currencyCode)
	}
	if !amount.Equal(amount.Round()) {
		return 0, fmt.Errorf("%.40q has more decimals than %s, which has %d", text, currencyCode, digits)
	}
	return amount.Int64()
}

// percent is a percentage with up to two decimals, in basis points.
func (o *object) percent(key string, fallback int64) int64 {
	text, line, ok := o.text(key)
	if !ok {
		return fallback
	}
	bp, err := parsePercent(text)
	if err != nil {
		o.report.Add(line, o.path+key, "%s", err)
		return fallback
	}
	return bp
}

func parsePercent(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(strings.TrimSpace(strings.TrimSuffix(text, "%")), ".")
	fraction = strings.TrimRight(fraction, "0")
	n, err := strconv.ParseUint(whole, 10, 16)
	f, err2 := strconv.ParseUint((fraction + "00")[:2], 10, 16)
	if err = errors.Join(err, err2); err != nil || len(fraction) > 2 || n > 100 {
		return 0, fmt.Errorf("%.40q must be a percentage from 0 to 100 with at most two decimals, such as 7 or 19.6", text)
	}
	return int64(n)*100 + int64(f), nil
}
