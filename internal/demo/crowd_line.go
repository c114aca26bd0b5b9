package demo

import (
	"fmt"
	"math/rand/v2"
)

// Who stands in line beside the buyers: of a hundred in line who mean it forty never come, and of a hundred of all who
// ask for something forty are programs.
const (
	noShowsPer = 2.0 / 3 // buyers
	botsPer    = 2.0 / 3 // buyers
)

// A trick is what a bot tries.
type trick uint8

const (
	trickNoProof  trick = iota // joins without the work
	trickForged                // joins with work that it made up
	trickReplay                // sends one join again and again
	trickAccounts              // joins as several customers from one address
	trickNoTicket              // claims with a queue ticket that it made up
	trickPass                  // holds with an admission token that it made up, or with none
	trickGang                  // comes in, lends its admission, holds and lets go as fast as it can, and comes again when it has left
	trickCode                  // guesses presale codes
)

// tricks are how many of a hundred bots try what.
var tricks = []share[trick]{
	{30, trickNoProof}, {20, trickForged}, {10, trickReplay}, {5, trickAccounts}, {12, trickNoTicket}, {18, trickPass}, {1, trickGang}, {4, trickCode},
}

// A bot is a program that wants seats faster than people.
type bot struct {
	buyer
	trick trick
}

// castBots decides which bots come: the first of them show every trick.
func castBots(seed uint64, buyers int) []bot {
	random := rand.New(rand.NewPCG(seed, 0x626f7473))
	bots := make([]bot, max(int(botsPer*float64(buyers)), int(trickCode)+1))
	for i := range bots {
		number := botNumber + i
		bots[i] = bot{buyer{number: number, name: fmt.Sprintf("bot-%d-%06d", seed, i), party: botSeats, random: rand.New(rand.NewPCG(seed, uint64(number)))}, pick(random, tricks)}
		if i <= int(trickCode) {
			bots[i].trick = trick(i)
		}
	}
	return bots
}

// castNoShows decides who joins and never comes.
func castNoShows(seed uint64, buyers int) []buyer {
	all := make([]buyer, int(noShowsPer*float64(buyers)))
	for i := range all {
		number := noShowNumber + i
		all[i] = buyer{number: number, name: fmt.Sprintf("absent-%d-%06d", seed, i), noShow: true, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	}
	return all
}

// botSeats is how many seats a bot holds.
const botSeats = 2

// Numbers of those who are no buyers, beyond any buyer and below the staff.
const (
	noShowNumber = 1 << 20
	botNumber    = 1 << 21
)
