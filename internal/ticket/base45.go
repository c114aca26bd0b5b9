package ticket

import "strings"

// Base45 (RFC 9285) uses the 45 characters of a QR code's alphanumeric mode, which packs two into 11 bits. A ticket's 91
// bytes become 137 characters, which fit a code of version 6 (41 modules a side, error correction M); base64 would be 122
// characters in byte mode and need version 7. Fewer modules are larger ones: easier to read from a cracked screen.
const digits45 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"

// encodedSize is how many characters n bytes become.
func encodedSize(n int) int { return n/2*3 + n%2*2 }

func encode(b []byte) string {
	out := make([]byte, 0, encodedSize(len(b)))
	for ; len(b) >= 2; b = b[2:] {
		v := int(b[0])<<8 | int(b[1])
		out = append(out, digits45[v%45], digits45[v/45%45], digits45[v/45/45])
	}
	if len(b) == 1 {
		out = append(out, digits45[b[0]%45], digits45[b[0]/45])
	}
	return string(out)
}

// decode reads what encode writes and nothing else: one text for the same bytes.
func decode(text string) (b []byte, ok bool) {
	for len(text) > 0 {
		n := min(3, len(text))
		v, bytes := 0, n-1
		for i := n - 1; i >= 0; i-- {
			d := strings.IndexByte(digits45, text[i])
			if d < 0 {
				return nil, false
			}
			v = v*45 + d
		}
		if bytes == 0 || v >= 1<<(8*bytes) {
			return nil, false
		}
		if bytes == 2 {
			b = append(b, byte(v>>8))
		}
		b = append(b, byte(v))
		text = text[n:]
	}
	return b, true
}

// crockford are the digits of a kid.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func packKID(kid string) (packed [5]byte, ok bool) {
	if len(kid) != 8 {
		return packed, false
	}
	v := uint64(0)
	for i := range len(kid) {
		d := strings.IndexByte(crockford, kid[i])
		if d < 0 {
			return packed, false
		}
		v = v<<5 | uint64(d)
	}
	for i := range packed {
		packed[i] = byte(v >> (32 - 8*i))
	}
	return packed, true
}

func unpackKID(packed [5]byte) string {
	v := uint64(0)
	for _, b := range packed {
		v = v<<8 | uint64(b)
	}
	var kid [8]byte
	for i := range kid {
		kid[i] = crockford[v>>(35-5*i)&31]
	}
	return string(kid[:])
}
