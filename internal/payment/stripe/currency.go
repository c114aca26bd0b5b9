package stripe

import (
	"fmt"
	"math"
	"strings"

	"github.com/bojanz/currency"

	"onsale/internal/payment"
)

// Stripe counts most currencies in hundredths, also where nobody else does (ISK, UGX). These are the others.
const (
	wholeUnits  = " BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF "
	thousandths = " BHD JOD KWD OMR TND " // but the last digit must be 0
)

func stripeDigits(code string) int {
	switch {
	case strings.Contains(wholeUnits, " "+code+" "):
		return 0
	case strings.Contains(thousandths, " "+code+" "):
		return 3
	}
	return 2
}

// units is how many of Stripe's units make one of the ledger's (up), or how many of the ledger's make one of Stripe's
// (down); one of the two is 1. The ledger counts in the currency's usual minor unit, as prices are read.
func units(code string) (up, down int64, err error) {
	digits, known := currency.GetDigits(code)
	if !known {
		return 0, 0, fmt.Errorf("%w: currency %s is not known", payment.ErrInvalid, code)
	}
	up, down = 1, 1
	for d := int(digits); d < stripeDigits(code); d++ {
		up *= 10
	}
	for d := stripeDigits(code); d < int(digits); d++ {
		down *= 10
	}
	return up, down, nil
}

// toStripe is an amount of the ledger in Stripe's units (A15). ErrInvalid where Stripe cannot take it exactly.
func toStripe(amountMinor int64, code string) (int64, error) {
	up, down, err := units(code)
	if err != nil {
		return 0, err
	}
	if amountMinor > math.MaxInt64/up || amountMinor%down != 0 {
		return 0, fmt.Errorf("%w: Stripe cannot take %d minor units of %s", payment.ErrInvalid, amountMinor, code)
	}
	amount := amountMinor * up / down
	if stripeDigits(code) == 3 && amount%10 != 0 {
		return 0, fmt.Errorf("%w: Stripe takes %s to two decimals only, so prices must end in 0", payment.ErrInvalid, code)
	}
	return amount, nil
}

// fromStripe is an amount of Stripe's in the ledger's minor units. What is not a whole minor unit, which no call of ours
// makes, is rounded down; amounts of a currency that is not known stay as they are, to be shown.
func fromStripe(amount int64, code string) int64 {
	up, down, err := units(code)
	if err != nil {
		return amount
	}
	return amount / up * down
}
