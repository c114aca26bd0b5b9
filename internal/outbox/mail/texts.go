package mail

import (
	"fmt"
	"strings"
)

// A text is one phrase in both languages. {name} stands for a value.
type text struct{ en, zh string }

// texts are all phrases of all mails, by key. A test sees that none is missing, in either language, and that both use the
// same values.
var texts = map[string]text{
	"footer":       {"You get this mail because of your booking or account with {site}.", "您收到此邮件，是因为您在 {site} 有订单或账户。"},
	"footer.alert": {"You get this mail because you are an owner of {organizer}.", "您收到此邮件，是因为您是 {organizer} 的所有者。"},
	"test":         {"TEST: paid in a sandbox. Not a right of entry.", "测试：沙盒付款，不能入场。"},
	"test.money":   {"TEST: a sandbox. No real money moves.", "测试：沙盒环境，不涉及真实资金。"},
	"test.subject": {"[TEST] {subject}", "[测试] {subject}"},
	"hello":        {"Hello {name},", "{name}，您好："},
	"hello.none":   {"Hello,", "您好："},

	"row.event":     {"Event", "演出"},
	"row.date":      {"Date", "时间"},
	"row.doors":     {"Doors", "入场"},
	"row.place":     {"Place", "地点"},
	"row.booking":   {"Booking", "订单"},
	"row.paid":      {"Paid", "已付"},
	"row.amount":    {"Amount", "金额"},
	"row.back":      {"Given back", "退还"},
	"row.kept":      {"Fee kept", "手续费"},
	"row.was.date":  {"Old date", "原时间"},
	"row.now.date":  {"New date", "新时间"},
	"row.was.doors": {"Old doors", "原入场时间"},
	"row.now.doors": {"New doors", "新入场时间"},
	"row.was.place": {"Old place", "原地点"},
	"row.now.place": {"New place", "新地点"},
	"row.ticket":    {"Ticket", "门票"},
	"row.role":      {"Role", "角色"},
	"row.expires":   {"Good until", "有效期至"},

	"row.offer.until":  {"Yours until", "保留至"},
	"row.offer.places": {"Places", "张数"},
	"free":             {"free", "免费"},
	"none":             {"not said", "未公布"},

	"ticket":          {"Ticket {n} of {count}", "门票 {n} / {count}"},
	"ticket.section":  {"Section {section}", "{section} 区"},
	"ticket.seat":     {"Row {row}, seat {seat}", "{row} 排 {seat} 座"},
	"ticket.seatonly": {"Seat {seat}", "{seat} 座"},
	"ticket.alt":      {"QR code of ticket {ticket}", "门票 {ticket} 的二维码"},
	"ticket.more":     {"{count} more tickets are on your booking’s page.", "另有 {count} 张门票，请在订单页面查看。"},
	"ticket.show":     {"Show the QR codes at the entrance, on the screen or on paper. Keep them to yourself: whoever has one can enter with it.", "入场时出示二维码，手机或纸质均可。请勿外传：持码即可入场。"},
	"ticket.text":     {"The QR codes are attached as pictures.", "二维码见附件图片。"},

	"button.booking":    {"See your booking", "查看订单"},
	"button.tickets":    {"See your tickets", "查看门票"},
	"button.invitation": {"Accept the invitation", "接受邀请"},
	"button.alert":      {"Look at the order", "查看订单"},

	"code.subject": {"{code} is your sign-in code", "登录验证码 {code}"},
	"code.title":   {"Your sign-in code", "您的登录验证码"},
	"code.intro":   {"Type it on the page where you asked for it. It works once, for {minutes} minutes.", "请在申请验证码的页面输入。验证码仅可使用一次，{minutes} 分钟内有效。"},
	"code.notice":  {"If you did not ask for it, somebody typed your address by mistake: nothing happens without the code. Never tell it to anybody; we never ask for it.", "如果不是您本人操作，可能是他人误填了您的邮箱：没有验证码就无法登录。请勿告诉任何人，我们绝不会向您索取。"},

	"invitation.subject": {"{organizer} invites you", "{organizer} 邀请您加入"},
	"invitation.title":   {"An invitation from {organizer}", "来自 {organizer} 的邀请"},
	"invitation.intro":   {"You are invited to work with {organizer} on {site}. Sign in with this e-mail address to accept.", "{organizer} 邀请您在 {site} 上共同工作。请使用此邮箱登录并接受邀请。"},
	"invitation.nolink":  {"There is no page for it here yet: ask {organizer} how to sign in. Their program, or yours, then sends the word below to POST /v1/invitations/accept as {\"token\": \"…\"}. The word: {token}", "这里暂无接受邀请的页面：请向 {organizer} 询问如何登录。登录后，由程序将以下口令以 {\"token\": \"…\"} 的形式发送至 POST /v1/invitations/accept。口令：{token}"},
	"invitation.notice":  {"If you did not expect this, do nothing: the invitation ends by itself.", "如果您并不知情，请忽略此邮件：邀请会自动失效。"},
	"role.owner":         {"Owner: everything, also roles", "所有者：全部权限，包括角色管理"},
	"role.operator":      {"Operator: sales, orders, refunds", "操作员：销售、订单、退款"},
	"role.viewer":        {"Viewer: figures and orders, no changes", "查看者：查看数据与订单，不可更改"},
	"role.door":          {"Door: checks tickets in", "检票员：检票入场"},

	"tickets.subject": {"Your tickets: {event}", "您的门票：{event}"},
	"tickets.title":   {"Your tickets are here", "出票成功"},
	"tickets.intro":   {"Thank you. Your booking is paid, and these are your tickets.", "感谢购票！订单已付款，以下是您的门票。"},
	"tickets.free":    {"Thank you. Your booking is confirmed, and these are your tickets.", "感谢预订！订单已确认，以下是您的门票。"},

	"exchanged.subject": {"Your new tickets: {event}", "改签成功：{event}"},
	"exchanged.title":   {"Your tickets are exchanged", "改签成功"},
	"exchanged.intro":   {"These are your new tickets. The old ones are void: please delete them.", "以下是您的新门票，原门票已作废，请删除。"},
	"exchanged.paid":    {"The difference is paid.", "差价已付清。"},
	"exchanged.back":    {"The difference goes back to where you paid from. Banks take a few days for it.", "差价将退回原付款账户，银行处理需要几天。"},

	"given_back.subject": {"Your payment goes back: {event}", "付款将退还：{event}"},
	"given_back.title":   {"We give your payment back", "我们将退还您的付款"},
	"given_back.notice":  {"You need not do anything. The money goes back to where you paid from, or was only reserved and is set free; banks take a few days for it.", "您无需任何操作。款项将退回原付款账户；若仅为预授权，则会解除。银行处理需要几天。"},

	"reason.late_payment":        {"Your payment came after your hold had run out, and the seats had gone on to somebody else. We are sorry.", "您的付款到达时，座位保留时间已过，座位已被他人购得。非常抱歉。"},
	"reason.second_payment":      {"This booking had been paid already. Its tickets stay yours; this second payment is too much.", "该订单此前已付款，门票仍归您所有；这笔重复付款将退还。"},
	"reason.wrong_amount":        {"The amount that was paid is not the booking’s. So the booking was not made.", "支付金额与订单金额不符，订单未能成立。"},
	"reason.event_cancelled":     {"The event is cancelled.", "演出已取消。"},
	"reason.capture_refused":     {"Your bank had reserved the money and then refused to hand it over.", "银行预授权了款项，但随后拒绝划付。"},
	"reason.customer":            {"You asked for it.", "应您的申请。"},
	"reason.exchanged":           {"The tickets were exchanged for others.", "门票已改签。"},
	"reason.exchange_difference": {"It is the difference of your exchange.", "这是改签的差价。"},
	"reason.not_exchangeable":    {"The exchange was not possible any more when your payment came. Your old tickets stay good.", "付款到达时已无法改签，您的原门票仍然有效。"},
	"reason.other":               {"The organizer gives it back.", "由主办方办理退款。"},

	"failed.subject":  {"Your booking did not work: {event}", "预订未成功：{event}"},
	"failed.title":    {"Your payment was declined", "付款未成功"},
	"failed.intro":    {"Your payment was declined in the end, so there are no tickets, and nothing was charged. If your hold has not run out yet, you can still pay with another card.", "您的付款最终被拒绝，未出票，也未扣款。如果座位保留尚未过期，您仍可换一张卡付款。"},
	"expired.subject": {"Your booking has run out: {event}", "订单已过期：{event}"},
	"expired.title":   {"Your booking has run out", "订单已过期"},
	"expired.intro":   {"Your payment was not finished in time, so there are no tickets. If money was taken nevertheless, it goes back by itself.", "付款未在规定时间内完成，未出票。如已扣款，将自动退还。"},

	"refund_requested.subject": {"Your tickets are given back: {event}", "退票已受理：{event}"},
	"refund_requested.title":   {"Your refund is on its way", "退款处理中"},
	"refund_requested.intro":   {"These tickets are void now, and your money goes back to where you paid from. Banks take a few days for it.", "以下门票已作废，款项将退回原付款账户，银行处理需要几天。"},
	"refund_requested.nothing": {"These tickets are void now. There is no money to give back for them.", "以下门票已作废，没有可退还的款项。"},
	"refund_done.subject":      {"Your money is back: {event}", "退款完成：{event}"},
	"refund_done.title":        {"Your refund is done", "退款完成"},
	"refund_done.intro":        {"The money has gone back to where you paid from. Your bank shows it within a few days.", "款项已退回原付款账户，银行将在几天内入账。"},
	"rule.customer":            {"The event’s rule for tickets given back keeps this fee.", "按演出的退票规则收取此手续费。"},
	"rule.exchange":            {"The event’s rule for exchanges keeps this fee.", "按演出的改签规则收取此手续费。"},
	"rule.organizer":           {"The organizer keeps this fee.", "由主办方收取此手续费。"},

	"received.subject":  {"You have a ticket: {event}", "您收到一张门票：{event}"},
	"received.title":    {"A ticket for you", "您收到一张门票"},
	"received.intro":    {"{other} has passed this ticket on to you. It is yours now; the old one is void.", "{other} 将此门票转赠给您。门票现归您所有，原票已作废。"},
	"received.nobody":   {"Somebody", "有人"},
	"passed_on.subject": {"Your ticket is passed on: {event}", "门票已转赠：{event}"},
	"passed_on.title":   {"Your ticket is passed on", "门票已转赠"},
	"passed_on.intro":   {"The ticket belongs to the other person now, who has a mail with a new code. Your old code is void: please delete it.", "门票现已归对方所有，新二维码已发送给对方。您原来的二维码已作废，请删除。"},
	"passed_on.notice":  {"If this was not you, tell the organizer at once.", "如果不是您本人操作，请立即联系主办方。"},

	"capture_refused.subject": {"Your tickets are void: {event}", "门票已作废：{event}"},
	"capture_refused.title":   {"Your tickets are void", "门票已作废"},
	"capture_refused.intro":   {"Your bank had reserved the money for this booking and then refused to hand it over. So the tickets are void, and the seats are free for others. Nothing was charged. We are sorry.", "银行预授权了该订单的款项，但随后拒绝划付。因此门票作废，座位已释放，未扣款。非常抱歉。"},
	"capture_refused.notice":  {"If there are still seats, you can book again with another card.", "如仍有余票，您可以换一张卡重新购票。"},

	"event_changed.subject":   {"Changed: {event}", "变更通知：{event}"},
	"event_changed.title":     {"Your event has changed", "演出信息有变更"},
	"event_changed.intro":     {"Please note what is new. Your tickets stay good, with the same codes.", "请留意以下变更。您的门票和二维码仍然有效。"},
	"event_cancelled.subject": {"Cancelled: {event}", "取消通知：{event}"},
	"event_cancelled.title":   {"Your event is cancelled", "演出已取消"},
	"event_cancelled.intro":   {"We are sorry: this event does not take place. What you paid goes back to you by itself; another mail tells you about it.", "非常抱歉，本场演出已取消。您支付的款项将自动退还，届时会另行邮件通知。"},

	"offered.subject":       {"Seats for you: {event}", "候补成功：{event}"},
	"offered.title":         {"What you wished for is here", "候补到票"},
	"offered.intro":         {"Somebody has given seats back, and you are next on the waitlist. They are held for you until {time}: sign in and pay for them before then.", "有人退回了座位，候补名单轮到您了。座位为您保留至 {time}，请在此之前登录并付款。"},
	"offered.notice":        {"If you do not want them, let them go, and the next one is served. What you do not take until then goes on to somebody else by itself; your wish then waits behind those who had no offer yet.", "如果不需要，请放弃，系统将通知下一位。逾期未付款的座位会自动转给他人；您的候补登记随后排在尚未获得机会的人之后。"},
	"waitlist_over.subject": {"The waitlist is over: {event}", "候补结束：{event}"},
	"waitlist_over.title":   {"The waitlist is over", "候补结束"},
	"waitlist_over.intro":   {"Your wish for this event waits no more: the sale is over, or several offers were not taken. We are sorry if nothing came for you.", "您对本场演出的候补登记已结束：销售已结束，或多次机会未被采用。如未能购到票，非常抱歉。"},

	"alert.subject":                  {"Please look: {what}", "请查看：{what}"},
	"alert.give_back":                {"a payment is given back", "一笔付款正在退还"},
	"alert.give_back.text":           {"A payment came too late, twice or with a wrong amount. It is given back by itself; nothing is to be done unless it happens often.", "一笔付款过迟、重复或金额有误，系统会自动退还。除非频繁发生，否则无需处理。"},
	"alert.capture_refused":          {"a payment was refused after the sale", "售出后款项被拒"},
	"alert.capture_refused.text":     {"The bank refused to hand over money that it had reserved. The tickets are void, the seats are back on sale, and the customer was told.", "银行拒绝划付已预授权的款项。门票已作废，座位已重新上架，顾客已收到通知。"},
	"alert.refund_refused":           {"a refund was refused", "一笔退款被拒"},
	"alert.refund_refused.text":      {"The payment provider has refused a refund for good. The customer still waits for the money: try again, or pay it another way.", "支付服务商最终拒绝了一笔退款。顾客仍在等待款项：请重试或以其他方式退款。"},
	"alert.conflict":                 {"a ticket was used twice or void", "门票重复使用或已作废"},
	"alert.conflict.text":            {"A door that was without a network let somebody in with a ticket that had been used or was void. Times and gates are in the console.", "离线检票口放行了一张已使用或已作废的门票。时间和入口见控制台。"},
	"alert.invariant":                {"a sale was stopped", "一场销售已停止"},
	"alert.invariant.text":           {"The program found rows of this event that contradict each other, and stopped its sale. Run onsale audit, look, then onsale event restart.", "系统发现该场次的数据自相矛盾，已停止销售。请运行 onsale audit 检查，然后运行 onsale event restart。"},
	"alert.dead_letter":              {"mails could not be delivered", "有邮件无法送达"},
	"alert.dead_letter.text":         {"The mail server has refused a mail for good, or it failed for three days. The customer was not reached.", "邮件服务器最终拒收，或连续三天发送失败。未能通知到顾客。"},
	"date.zone":                      {"({abbreviation}, {zone})", "（{zone} 时间，{abbreviation}）"},
	"date.utc":                       {"(UTC)", "（UTC）"},
	"test.ticket":                    {"TEST", "测试"},
	"colon":                          {": ", "："},
	"calendar.summary":               {"{event}", "{event}"},
	"calendar.description":           {"Booking {booking}", "订单 {booking}"},
	"calendar.description.cancelled": {"Cancelled. Booking {booking}", "已取消。订单 {booking}"},
}

// A language says phrases.
type language struct {
	tag string // of identity.Locales
	zh  bool
}

func languageOf(locale string) language {
	if strings.HasPrefix(strings.ToLower(locale), "zh") {
		return language{"zh-CN", true}
	}
	return language{"en", false}
}

// say is a phrase, with values by name: name, value, name, value.
func (l language) say(key string, pairs ...string) string {
	t, ok := texts[key]
	if !ok {
		panic(fmt.Sprintf("mail: no text %q", key)) // a test looks up every key
	}
	phrase := t.en
	if l.zh {
		phrase = t.zh
	}
	if len(pairs) == 0 {
		return phrase
	}
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{" + pairs[i] + "}"
	}
	return strings.NewReplacer(pairs...).Replace(phrase)
}

// or is the phrase of a key, or of another where there is none: for words that come from elsewhere.
func (l language) or(key, otherwise string) string {
	if _, ok := texts[key]; !ok {
		key = otherwise
	}
	return l.say(key)
}
