package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// What a browser is known by (C1): a signed cookie. It is no person and no identity. Two people may share a device, and one
// may have many: it is evidence, and a subject for those who wait before they sign in.
const (
	DeviceCookie = "onsale_device"
	DeviceLife   = 400 * 24 * time.Hour // as long as browsers keep a cookie
	// DeviceRenew is the age at which a cookie is to be given out anew, with the same device in it.
	DeviceRenew = 100 * 24 * time.Hour

	deviceVersion = 1
	deviceAhead   = 10 * time.Minute // how far a node's clock may be behind another's
	macBytes      = 16
	deviceBytes   = 1 + 16 + 8 + 8 + macBytes
)

// A Device is a browser's random name. The zero value is none.
type Device [16]byte

// IsZero says whether there is none.
func (d Device) IsZero() bool { return d == Device{} }

// String is for lists and logs.
func (d Device) String() string { return hex.EncodeToString(d[:]) }

// ParseDevice reads what String wrote.
func ParseDevice(text string) (d Device, ok bool) {
	if len(text) != hex.EncodedLen(len(d)) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil && !d.IsZero()
}

// A DeviceMark is what a cookie says.
type DeviceMark struct {
	Device Device
	Since  time.Time // when the device was first given one, whole seconds
	Issued time.Time // when this cookie was
}

// Renew says that the cookie should be given out anew.
func (m DeviceMark) Renew(now time.Time) bool { return now.Sub(m.Issued) > DeviceRenew }

// Devices give out cookies and check them.
type Devices struct{ secrets Secrets }

// NewDevices signs with the gate's secrets.
func NewDevices(s Secrets) *Devices { return &Devices{s} }

// New is a device that nobody had before, with its cookie.
func (d *Devices) New(now time.Time) (DeviceMark, string) {
	m := DeviceMark{Since: now, Issued: now}
	rand.Read(m.Device[:]) // never fails
	return m, d.Cookie(m)
}

// Cookie is the value for a mark, to be kept for DeviceLife.
func (d *Devices) Cookie(m DeviceMark) string {
	b := make([]byte, 0, deviceBytes)
	b = append(b, deviceVersion)
	b = append(b, m.Device[:]...)
	b = append(b, seconds(m.Since)...)
	b = append(b, seconds(m.Issued)...)
	b = append(b, mac(d.secrets.Of("device")[0], b)[:macBytes]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read is what a cookie says; ok is false for one that is forged, older than DeviceLife, or issued in a future that no
// clock of ours has.
func (d *Devices) Read(now time.Time, cookie string) (m DeviceMark, ok bool) {
	if len(cookie) != base64.RawURLEncoding.EncodedLen(deviceBytes) {
		return m, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cookie)
	if err != nil || b[0] != deviceVersion {
		return m, false
	}
	signed, sum := b[:deviceBytes-macBytes], b[deviceBytes-macBytes:]
	good := false
	for _, secret := range d.secrets.Of("device") {
		good = good || hmac.Equal(sum, mac(secret, signed)[:macBytes])
	}
	if !good {
		return m, false
	}
	copy(m.Device[:], b[1:])
	m.Since = time.Unix(int64(binary.BigEndian.Uint64(b[17:])), 0).UTC()
	m.Issued = time.Unix(int64(binary.BigEndian.Uint64(b[25:])), 0).UTC()
	if age := now.Sub(m.Issued); age > DeviceLife || age < -deviceAhead {
		return DeviceMark{}, false
	}
	return m, true
}
