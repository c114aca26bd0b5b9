// Package fault is the catalogue of everything that Onsale refuses or fails to do: one code each, with its HTTP status,
// whether trying again can help, and a text that is safe to show to people. The HTTP answers, the OpenAPI document and
// the clients' types come from it; a code never changes its meaning.
//
// Start at Catalogue.
package fault

import (
	"errors"
	"fmt"
	"time"

	"onsale/internal/id"
)

// A Code names a fault. Codes are stable: clients switch on them.
type Code string

// The codes. What each means is in the Catalogue.
const (
	BadRequest         Code = "bad_request"
	Gone               Code = "gone"
	BodyTooLarge       Code = "body_too_large"
	Unsupported        Code = "unsupported_media_type"
	SignInRequired     Code = "sign_in_required"
	TokenInvalid       Code = "token_invalid"
	CodeWrong          Code = "code_wrong"
	PaymentDeclined    Code = "payment_declined"
	CrossOrigin        Code = "cross_origin"
	NotAdmitted        Code = "not_admitted"
	AdmissionExpired   Code = "admission_expired"
	ProofRequired      Code = "proof_required"
	PersonRequired     Code = "person_required"
	Blocked            Code = "blocked"
	WrongCustomer      Code = "wrong_customer"
	RoleMissing        Code = "role_missing"
	NotFound           Code = "not_found"
	EventUnknown       Code = "event_unknown"
	SeatUnknown        Code = "seat_unknown"
	HoldUnknown        Code = "hold_unknown"
	OrderUnknown       Code = "booking_unknown"
	TicketUnknown      Code = "ticket_unknown"
	RefundUnknown      Code = "refund_unknown"
	QueueUnknown       Code = "queue_unknown"
	WishUnknown        Code = "wish_unknown"
	MethodNotAllowed   Code = "method_not_allowed"
	SeatsTaken         Code = "seats_taken"
	PlacesTaken        Code = "places_taken"
	NoSeatsFound       Code = "no_seats_found"
	LimitReached       Code = "limit_reached"
	HoldExpired        Code = "hold_expired"
	HoldNotExtendable  Code = "hold_not_extendable"
	PaymentInProgress  Code = "payment_in_progress"
	SoldOut            Code = "sold_out"
	AlreadyInLine      Code = "already_in_line"
	CodeUsedUp         Code = "code_used_up"
	NotOnSale          Code = "not_on_sale"
	Paused             Code = "paused"
	Conflict           Code = "conflict"
	NotRefundable      Code = "not_refundable"
	NotExchangeable    Code = "not_exchangeable"
	NotTransferable    Code = "not_transferable"
	TicketUsed         Code = "ticket_used"
	TicketVoid         Code = "ticket_void"
	WrongEvent         Code = "wrong_event"
	WrongGate          Code = "wrong_gate"
	OrphanSeat         Code = "orphan_seat"
	PresaleCodeWrong   Code = "presale_code_wrong"
	KeyReused          Code = "key_reused"
	KeyMissing         Code = "key_missing"
	Invalid            Code = "invalid"
	TooManyRequests    Code = "too_many_requests"
	HoldRest           Code = "hold_rest"
	Busy               Code = "busy"
	NextIn             Code = "next_in"
	OutcomeUnknown     Code = "outcome_unknown"
	PaymentUnavailable Code = "payment_unavailable"
	Internal           Code = "internal"
)

// An Entry is what the catalogue says of a code.
type Entry struct {
	Code   Code
	Status int    // HTTP
	Retry  bool   // the same request may succeed later, unchanged
	En, Zh string // for people; they promise nothing that the code does not
}

// Catalogue lists every code once, by status.
var Catalogue = []Entry{
	{BadRequest, 400, false, "The request could not be read.", "无法读取该请求。"},
	{KeyMissing, 400, false, "This call needs an Idempotency-Key header.", "此调用需要 Idempotency-Key 请求头。"},
	{SignInRequired, 401, false, "Please sign in first.", "请先登录。"},
	{TokenInvalid, 401, false, "This sign-in is not valid or has run out. Please sign in again.", "登录无效或已过期，请重新登录。"},
	{CodeWrong, 401, false, "This code is not right, or it has run out. Check it, or ask for a new one.", "验证码不正确或已失效，请核对，或重新获取。"},
	{PaymentDeclined, 402, false, "The payment was declined. You can try another card while your hold lasts.", "付款被拒绝。在保留时间内可以换一张卡再试。"},
	{CrossOrigin, 403, false, "A page of another site sent this. Please begin on our own pages.", "该请求来自其他网站的页面，请从本站页面操作。"},
	{NotAdmitted, 403, false, "Please go through the waiting room first.", "请先进入等候室排队。"},
	{AdmissionExpired, 403, false, "Your time inside has run out.", "您的购票时间已结束。"},
	{ProofRequired, 403, true, "Please solve the small task first; the page does it for you.", "请先完成验证计算，页面会自动处理。"},
	{PersonRequired, 403, true, "Please show that you are a person: solve the picture or listen to the code.", "请完成人机验证：输入图片或语音中的验证码。"},
	{Blocked, 403, false, "This is blocked by the organizer. If you think it is a mistake, please write to them.", "已被主办方限制；如有疑问，请联系主办方。"},
	{WrongCustomer, 403, false, "This belongs to another customer.", "这属于另一位顾客。"},
	{RoleMissing, 403, false, "Your role does not allow this.", "您的角色无权进行此操作。"},
	{NotFound, 404, false, "There is nothing here.", "此处没有内容。"},
	{EventUnknown, 404, false, "There is no such event.", "没有该场次。"},
	{SeatUnknown, 404, false, "There is no such seat in this event.", "该场次没有这个座位。"},
	{HoldUnknown, 404, false, "There is no such hold.", "没有该保留。"},
	{OrderUnknown, 404, false, "There is no such booking.", "没有该订单。"},
	{TicketUnknown, 404, false, "There is no such ticket.", "没有该门票。"},
	{RefundUnknown, 404, false, "There is no such refund.", "没有该退款。"},
	{QueueUnknown, 404, false, "There is no such place in the line. Please join again.", "没有该排队号码，请重新排队。"},
	{WishUnknown, 404, false, "There is no such wish on the waitlist.", "候补名单中没有该登记。"},
	{MethodNotAllowed, 405, false, "This address does not take this method.", "此地址不支持该方法。"},
	{SeatsTaken, 409, false, "Somebody was faster: these seats are taken.", "手慢了：这些座位已被选走。"},
	{PlacesTaken, 409, false, "There are not enough places left here.", "此区域余位不足。"},
	{NoSeatsFound, 409, false, "No seats that fit the wish are free.", "没有符合要求的空座。"},
	{LimitReached, 409, false, "This is more than one customer may have.", "超过每位顾客的限购数量。"},
	{HoldExpired, 409, false, "The hold has run out. If anything was charged for it, it is given back.", "保留已过期；如已扣款，将予退还。"},
	{HoldNotExtendable, 409, false, "This hold cannot be extended any more.", "该保留不能再延长。"},
	{PaymentInProgress, 409, true, "A payment is still being made here. Please try again in a moment.", "此处仍有付款正在进行，请稍后再试。"},
	{SoldOut, 409, false, "This event is sold out.", "该场次已售罄。"},
	{AlreadyInLine, 409, false, "Somebody with this document is in the line already.", "该证件已在排队中。"},
	{CodeUsedUp, 409, false, "This code has been used as often as it may be.", "该优先购票码已达使用次数上限。"},
	{NotOnSale, 409, false, "This event is not on sale now.", "该场次目前未开售。"},
	{Paused, 409, true, "The sale is paused for a moment.", "售票暂停中。"},
	{Conflict, 409, false, "This is not possible in the present state.", "当前状态下无法进行此操作。"},
	{NotRefundable, 409, false, "This ticket cannot be given back, or not any more.", "该门票不可退，或已过退票期限。"},
	{NotExchangeable, 409, false, "This ticket cannot be exchanged, or not any more.", "该门票不可改签，或已过改签期限。"},
	{NotTransferable, 409, false, "This ticket cannot be passed on, or not any more.", "该门票不可转让，或已过转让期限。"},
	{TicketUsed, 409, false, "This ticket has been used already.", "该门票已使用。"},
	{TicketVoid, 409, false, "This ticket is void.", "该门票已作废。"},
	{WrongEvent, 409, false, "This ticket is for another event.", "该门票属于另一场次。"},
	{WrongGate, 409, false, "This ticket belongs to another gate.", "该门票应从其他入口进入。"},
	{Gone, 410, false, "This is not kept any more.", "该内容已不再保留。"},
	{BodyTooLarge, 413, false, "The request is too large.", "请求内容过大。"},
	{Unsupported, 415, false, "Please send JSON.", "请发送 JSON。"},
	{Invalid, 422, false, "Something in the request is not right.", "请求内容有误。"},
	{OrphanSeat, 422, false, "This choice would leave a single seat alone. Please choose others.", "这样选会留下单个空座，请另选。"},
	{PresaleCodeWrong, 422, false, "This code is not good for this event.", "该优先购票码不适用于本场次。"},
	{KeyReused, 422, false, "This Idempotency-Key was used for a different request.", "该 Idempotency-Key 已用于另一请求。"},
	{TooManyRequests, 429, true, "Too many requests. Please wait a moment.", "请求过多，请稍候。"},
	{HoldRest, 429, true, "You let several holds run out. Please wait a little before the next one.", "您有多次保留未付款，请稍候再选座。"},
	{Internal, 500, true, "Something went wrong here. The error id helps us find it.", "系统出错，请提供错误编号以便查找。"},
	{Busy, 503, true, "Very many people are buying right now. Please try again in a moment.", "购票人数众多，请稍后再试。"},
	{NextIn, 503, true, "It is your turn, and you are next in. Please stay; this page goes on by itself.", "已轮到您，即将进入，请勿离开，页面将自动继续。"},
	{OutcomeUnknown, 503, true, "It is not certain whether this worked. Send the same request with the same key again.", "结果尚不确定，请用相同的 Idempotency-Key 重发同一请求。"},
	{PaymentUnavailable, 503, true, "Payment does not answer at the moment. Your hold goes on; please try again.", "支付暂时无响应，保留仍有效，请重试。"},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(Catalogue))
	for _, e := range Catalogue {
		if _, twice := m[e.Code]; twice {
			panic("fault: " + string(e.Code) + " is in the catalogue twice")
		}
		m[e.Code] = e
	}
	return m
}()

// Lookup is the catalogue's entry of a code; an unknown code is Internal.
func Lookup(c Code) Entry {
	if e, ok := byCode[c]; ok {
		return e
	}
	return byCode[Internal]
}

// Error is a fault that happened. Only Code is always set.
type Error struct {
	Code       Code
	Detail     string        // one sentence that names the mend; safe for people
	Field      string        // the part of the request that is wrong
	Seats      []int32       // seat indexes: the taken ones, the orphans
	Order      id.ID         // the order in whose way the request was
	RetryAfter time.Duration // 0: not said
	Cause      error         // for the log only
}

// New makes a fault with a detail for people.
func New(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// Wrap makes a fault out of an unexpected error, which goes to the log.
func Wrap(c Code, cause error) *Error { return &Error{Code: c, Cause: cause} }

// Error is for logs.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Field != "" {
		s += " (" + e.Field + ")"
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, fault.New(code, "")) true for every fault of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Of is the fault in err's chain; any other error is Internal with err as its cause; nil stays nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { // nearly always, and much cheaper than to look for it
		return e
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Wrap(Internal, err)
}

// CodeOf is the code of err, "" for nil.
func CodeOf(err error) Code {
	if e := Of(err); e != nil {
		return e.Code
	}
	return ""
}
