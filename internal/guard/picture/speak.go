package picture

import (
	"encoding/binary"
	"math"
	random "math/rand/v2"
)

// speak reads digits aloud, in English: a WAV, one channel.
func speak(digits string, r *random.Rand) []byte {
	v := newVoice(r)
	v.silence(0.25)
	for i := range len(digits) {
		for _, s := range sayings[digits[i]] {
			v.say(s)
		}
		v.say(quiet)
		v.silence(0.22 + 0.12*r.Float64())
	}
	return wav(v.finish())
}

const sampleRate = 16_000

// A sound is a piece of a digit: where the resonances of the mouth lie (Hz), how loud the voice and the noise are, and
// where the noise lies.
type sound struct {
	seconds    float64
	f1, f2, f3 float64
	voice      float64
	noise      float64
	at, width  float64 // of the noise, Hz
	jump       bool    // the mouth does not glide here from the sound before
}

// quiet ends a digit.
var quiet = sound{seconds: 0.04, f1: 500, f2: 1500, f3: 2500}

// Vowels and consonants, by the resonances that are known of English speakers.
var (
	iy = sound{seconds: 0.20, f1: 280, f2: 2250, f3: 2950, voice: 1}
	ih = sound{seconds: 0.13, f1: 400, f2: 1950, f3: 2550, voice: 1}
	eh = sound{seconds: 0.13, f1: 550, f2: 1800, f3: 2500, voice: 1}
	ah = sound{seconds: 0.17, f1: 640, f2: 1200, f3: 2400, voice: 1}
	ax = sound{seconds: 0.08, f1: 500, f2: 1450, f3: 2450, voice: 0.8}
	aa = sound{seconds: 0.16, f1: 740, f2: 1150, f3: 2450, voice: 1}
	ao = sound{seconds: 0.20, f1: 560, f2: 860, f3: 2400, voice: 1}
	ow = sound{seconds: 0.14, f1: 480, f2: 900, f3: 2350, voice: 1}
	uw = sound{seconds: 0.24, f1: 310, f2: 900, f3: 2250, voice: 0.9}
	ey = sound{seconds: 0.13, f1: 480, f2: 1950, f3: 2600, voice: 1}
	rr = sound{seconds: 0.10, f1: 330, f2: 1150, f3: 1500, voice: 0.8}
	ww = sound{seconds: 0.10, f1: 300, f2: 650, f3: 2200, voice: 0.6}
	nn = sound{seconds: 0.15, f1: 300, f2: 1600, f3: 2600, voice: 0.45}
	ss = sound{seconds: 0.16, f1: 350, f2: 1600, f3: 2600, noise: 0.30, at: 5600, width: 1800}
	zz = sound{seconds: 0.12, f1: 300, f2: 1600, f3: 2600, voice: 0.35, noise: 0.20, at: 5600, width: 1800}
	ff = sound{seconds: 0.13, f1: 350, f2: 1100, f3: 2300, noise: 0.06, at: 4500, width: 6000}
	vv = sound{seconds: 0.09, f1: 300, f2: 1100, f3: 2300, voice: 0.35, noise: 0.04, at: 4500, width: 6000}
	th = sound{seconds: 0.13, f1: 350, f2: 1300, f3: 2600, noise: 0.06, at: 5800, width: 5000}

	stopT  = sound{seconds: 0.07, f1: 350, f2: 1700, f3: 2600}
	burstT = sound{seconds: 0.02, f1: 350, f2: 1700, f3: 2600, noise: 0.25, at: 4300, width: 2500, jump: true}
	airT   = sound{seconds: 0.04, f1: 400, f2: 1500, f3: 2500, noise: 0.10, at: 3000, width: 3500}
	stopK  = sound{seconds: 0.07, f1: 350, f2: 1900, f3: 2400}
	burstK = sound{seconds: 0.025, f1: 350, f2: 1900, f3: 2400, noise: 0.25, at: 2100, width: 900, jump: true}
)

func (s sound) lasting(seconds float64) sound { s.seconds = seconds; return s }

// sayings are the digits.
var sayings = map[byte][]sound{
	'0': {zz, ih.lasting(0.12), rr, ow, uw.lasting(0.12)},
	'1': {ww, ah, nn},
	'2': {stopT, burstT, airT, uw.lasting(0.12), uw},
	'3': {th, rr, iy},
	'4': {ff, ao, rr.lasting(0.14)},
	'5': {ff, aa, ih.lasting(0.10), vv},
	'6': {ss, ih.lasting(0.10), stopK, burstK, ss},
	'7': {ss, eh, vv, ax, nn},
	'8': {ey, ih.lasting(0.10), stopT, burstT, airT},
	'9': {nn, aa.lasting(0.20), ih.lasting(0.10), nn},
}

// A voice makes sounds, each gliding into the next.
type voice struct {
	r     *random.Rand
	out   []float64
	pitch float64
	speed float64
	tract float64 // how long this speaker's mouth is: all resonances are moved by it
	was   sound
	level level // of was

	mouth mouth
}

// A mouth is what a voice and a hiss go through.
type mouth struct {
	r1, r2, r3, r4, hiss     resonator
	phase, glottis, radiated float64
}

// levels are how loud the voice and the noise of a sound come out, so that say can make them as loud as they should be.
type level struct{ voice, noise float64 }

var levels = func() map[sound]level {
	all := map[sound]level{}
	r := random.New(random.NewPCG(1, 2))
	for _, said := range sayings {
		for _, s := range said {
			s.seconds = 0
			var m mouth
			var l level
			for range 4_000 {
				spoken, hissed := m.sample(r, 110, s.f1, s.f2, s.f3, s.at, s.width)
				l.voice += spoken * spoken
				l.noise += hissed * hissed
			}
			all[s] = level{1 / math.Sqrt(l.voice/4_000+1e-12), 1 / math.Sqrt(l.noise/4_000+1e-12)}
		}
	}
	return all
}()

func newVoice(r *random.Rand) *voice {
	return &voice{r: r, pitch: 95 + 50*r.Float64(), speed: 0.85 + 0.2*r.Float64(), tract: 0.95 + 0.12*r.Float64(), was: quiet}
}

func (v *voice) silence(seconds float64) {
	v.out = append(v.out, make([]float64, int(seconds*sampleRate))...)
	v.was, v.level = quiet, level{}
}

// say adds a sound. The mouth moves to it within 50 ms; voice and noise change faster.
func (v *voice) say(s sound) {
	n := int(s.seconds / v.speed * sampleRate)
	glide, fade := min(float64(n), 0.05*sampleRate), min(float64(n), 0.015*sampleRate)
	v.pitch *= 0.985 + 0.025*v.r.Float64()
	bare := s
	bare.seconds = 0
	is := levels[bare]
	is.voice, is.noise = is.voice*s.voice, is.noise*s.noise
	at, width := s.at, s.width
	if at == 0 {
		at, width = v.was.at, v.was.width
	}
	for i := range n {
		t, f := 1.0, min(1, float64(i)/fade)
		if !s.jump {
			t = min(1, float64(i)/glide)
		}
		mix := func(a, b, t float64) float64 { return a + t*(b-a) }
		spoken, hissed := v.mouth.sample(v.r, v.pitch, mix(v.was.f1, s.f1, t)*v.tract, mix(v.was.f2, s.f2, t)*v.tract, mix(v.was.f3, s.f3, t)*v.tract, at, width)
		v.out = append(v.out, spoken*mix(v.level.voice, is.voice, f)+hissed*mix(v.level.noise, is.noise, f))
	}
	v.was, v.level = s, is
}

// sample is the voice and the hiss of one moment.
func (m *mouth) sample(r *random.Rand, pitch, f1, f2, f3, at, width float64) (spoken, hissed float64) {
	m.phase += pitch / sampleRate
	pulse := 0.0
	if m.phase >= 1 {
		m.phase--
		pulse = 1
	}
	m.glottis += 0.12 * (pulse*8 - m.glottis) // a pulse with the slope of a glottis
	x := m.r1.pass(m.glottis+0.01*r.NormFloat64(), f1, 70)
	x = m.r2.pass(x, f2, 100)
	x = m.r3.pass(x, f3, 150)
	x = m.r4.pass(x, 3600, 250)
	spoken = x - 0.9*m.radiated // what leaves the mouth is its change
	m.radiated = x
	if at > 0 {
		hissed = m.hiss.pass(r.NormFloat64(), at, width)
	}
	return spoken, hissed
}

// A resonator lets through what lies around a frequency.
type resonator struct{ y1, y2 float64 }

func (q *resonator) pass(x, at, width float64) float64 {
	c := -math.Exp(-2 * math.Pi * width / sampleRate)
	b := 2 * math.Exp(-math.Pi*width/sampleRate) * math.Cos(2*math.Pi*at/sampleRate)
	y := (1-b-c)*x + b*q.y1 + c*q.y2
	q.y2, q.y1 = q.y1, y
	return y
}

// finish is what was said, equally loud, above a murmur that a machine cannot cut off: it has no silence.
func (v *voice) finish() []int16 {
	most := 1e-9
	for _, x := range v.out {
		most = max(most, math.Abs(x))
	}
	all := make([]int16, len(v.out))
	murmur := 0.0
	for i, x := range v.out {
		murmur += 0.1 * (v.r.NormFloat64() - murmur)
		all[i] = int16(max(-1, min(1, 0.8*x/most+0.02*murmur)) * 32_000)
	}
	return all
}

// wav is samples as a file.
func wav(samples []int16) []byte {
	size := 2 * len(samples)
	b := make([]byte, 0, 44+size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(36+size))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // PCM
	b = binary.LittleEndian.AppendUint16(b, 1) // one channel
	b = binary.LittleEndian.AppendUint32(b, sampleRate)
	b = binary.LittleEndian.AppendUint32(b, 2*sampleRate)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}
