// One picture: the calls on top (admitted upwards, denied downwards), the state's curve below, one time axis for both.
//
// Admitted and denied differ in place, shape and colour, so that no single one of them is needed to tell them apart.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulation.hpp"
#include "svg.hpp"

namespace pictures {

struct Words {
  const char* title;
  const char* caption;
  const char* level;        // what the curve is
  const char* limit;        // what the dashed line is
  const char* unit;         // after the numbers at the curve's axis
  bool boundaries = false;  // windows start at fixed instants
};

namespace style {
inline constexpr char kPaper[] = R"(rx="6" fill="#fbfbf9" stroke="#c5ccd3")";
inline constexpr char kTitle[] = R"(font-size="17" font-weight="bold" fill="#1f2933")";
inline constexpr char kCaption[] = R"(font-size="13" fill="#52606d")";
inline constexpr char kPhase[] = R"(font-size="11" fill="#52606d" text-anchor="middle")";
inline constexpr char kText[] = R"(font-size="12" fill="#1f2933")";
inline constexpr char kTextMiddle[] = R"(font-size="12" fill="#1f2933" text-anchor="middle")";
inline constexpr char kTextEnd[] = R"(font-size="12" fill="#1f2933" text-anchor="end")";
inline constexpr char kCount[] = R"(font-size="13" font-weight="bold" fill="#1f2933" text-anchor="middle")";
inline constexpr char kGrid[] = R"(stroke="#e2e6ea")";
inline constexpr char kBase[] = R"(stroke="#52606d")";
inline constexpr char kBracket[] = R"(fill="none" stroke="#1f2933")";
inline constexpr char kAdmitted[] = R"(fill="#1d5f8a")";
inline constexpr char kDenied[] = R"(fill="none" stroke="#b5431a" stroke-width="1.4")";
inline constexpr char kLine[] = R"(fill="none" stroke="#1f2933" stroke-width="1.5" stroke-linejoin="round")";
inline constexpr char kArea[] = R"(fill="#1d5f8a" fill-opacity="0.13")";
inline constexpr char kFading[] = R"(fill="#1d5f8a" fill-opacity="0.3")";
inline constexpr char kLimit[] = R"(fill="none" stroke="#7a4f9a" stroke-width="1.5" stroke-dasharray="6 4")";
inline constexpr char kBoundary[] = R"(fill="none" stroke="#7b8794" stroke-width="1.2" stroke-dasharray="1.5 3")";
}  // namespace style

inline constexpr std::int64_t kWidth = 720, kHeight = 436;
inline constexpr Hundredths kLeft = px(68), kRight = px(704);
inline constexpr Hundredths kPhaseY = px(76), kBracketY = px(92), kCallsY = px(164);
inline constexpr Hundredths kTop = px(264), kBottom = px(378), kLegendY = px(420);
inline constexpr Hundredths kRowHeight = 560;

class Chart {
 public:
  Chart(const Words& words, const Trace& trace)
      : words_(words), trace_(trace), yes_(admitted(trace)), no_(static_cast<int>(trace.calls.size()) - yes_),
        peak_(busiest_window(trace)), svg_(kWidth, kHeight, words.title, description()) {}

  std::string draw() && {
    frame();
    grid();
    labels();
    curve();
    calls();
    bracket();
    legend();
    return std::move(svg_).finish();
  }

 private:
  static Hundredths x(Micros t) { return kLeft + (kRight - kLeft) * t / kEnd; }
  Hundredths y(std::int64_t level) const {
    return kBottom - static_cast<Hundredths>(rl::Wide{kBottom - kTop} * level / trace_.full);
  }
  Hundredths y_of_part(int halves) const { return y(trace_.full * halves / 2); }

  std::string description() const {
    return std::string(words_.caption) + " Of " + std::to_string(yes_ + no_) + " calls in " + std::to_string(kEnd / kSecond) +
           " seconds " + std::to_string(yes_) + " are admitted and " + std::to_string(no_) + " denied; the busiest " +
           std::to_string(kWindow / kSecond) + " seconds hold " + std::to_string(peak_.calls) + " admitted calls.";
  }

  void frame() {
    svg_.rectangle({50, 50}, px(kWidth) - 100, px(kHeight) - 100, style::kPaper);
    svg_.text({px(16), px(28)}, words_.title, style::kTitle);
    svg_.text({px(16), px(48)}, words_.caption, style::kCaption);
    svg_.open(style::kPhase);
    for (const Phase& phase : kPhases) {
      if (phase.name[0] != '\0') svg_.text({x(phase.label_at), kPhaseY}, phase.name);
    }
    svg_.close();
  }

  void vertical_line(Micros t) { svg_.line({x(t), kBracketY - px(6)}, {x(t), kBottom + px(4)}); }

  void grid() {
    svg_.open(style::kGrid);
    for (Micros t = 0; t <= kEnd; t += 5 * kSecond) vertical_line(t);
    for (int part = 0; part <= 2; ++part) svg_.line({kLeft, y_of_part(part)}, {kRight, y_of_part(part)});
    svg_.close();
    if (!words_.boundaries) return;
    svg_.open(style::kBoundary);
    for (Micros t = kWindow; t < kEnd; t += kWindow) vertical_line(t);
    svg_.close();
  }

  void labels() {
    svg_.open(style::kTextMiddle);
    for (Micros t = 0; t <= kEnd; t += 5 * kSecond) {
      svg_.text({x(t), kBottom + px(18)}, std::to_string(t / kSecond) + (t == 0 ? " s" : ""));
    }
    svg_.close();
    svg_.open(style::kTextEnd);
    for (int part = 0; part <= 2; ++part) {
      svg_.text({kLeft - px(8), y_of_part(part) + px(4)}, std::to_string(kLimit * part / 2) + words_.unit);
    }
    svg_.text({kLeft - px(8), kCallsY - px(6)}, "admitted");
    svg_.text({kLeft - px(8), kCallsY + px(14)}, "denied");
    svg_.close();
  }

  std::vector<Spot> spots(const Curve& points) const {
    std::vector<Spot> all;
    for (const Point& p : points) all.push_back({x(p.at), y(p.level)});
    return all;
  }

  void area(const Curve& points, const char* attributes) {
    std::vector<Spot> outline = spots(points);
    outline.push_back({kRight, kBottom});
    outline.push_back({kLeft, kBottom});
    svg_.path(outline, attributes);
  }

  void curve() {
    area(trace_.level, style::kArea);
    if (!trace_.fading.empty()) area(trace_.fading, style::kFading);
    svg_.path(spots(trace_.level), style::kLine);
    svg_.path({{kLeft, kTop}, {kRight, kTop}}, style::kLimit);
  }

  // Calls closer together than half a second form a column over the first of them.
  template <class Mark>
  void columns(bool allowed, Mark mark) {
    Micros first = -kSecond;
    std::int64_t row = 0;
    for (const Call& c : trace_.calls) {
      if (c.at - first >= kSecond / 2) first = c.at, row = 0;
      if (c.allowed == allowed) mark(x(first), row++);
    }
  }

  void calls() {
    svg_.open(style::kBase);
    svg_.line({kLeft, kCallsY}, {kRight, kCallsY});
    svg_.close();
    svg_.open(style::kAdmitted);
    columns(true, [&](Hundredths at, std::int64_t row) { svg_.dot({at, kCallsY - px(5) - row * kRowHeight}, 250); });
    svg_.close();
    svg_.open(style::kDenied);
    columns(false, [&](Hundredths at, std::int64_t row) { svg_.cross({at, kCallsY + px(6) + row * kRowHeight}, 200); });
    svg_.close();
  }

  // The busiest window, over its calls.
  void bracket() {
    const Hundredths from = x(peak_.from), to = x(peak_.from + kWindow);
    svg_.path({{from, kBracketY + px(6)}, {from, kBracketY}, {to, kBracketY}, {to, kBracketY + px(6)}}, style::kBracket);
    const std::string words = std::to_string(peak_.calls) + " in " + std::to_string(kWindow / kSecond) + " s";
    svg_.text({(from + to) / 2 + px(8), kBracketY + px(18)}, words, style::kCount);
  }

  void legend() {
    const Hundredths middle = kLegendY - px(4);
    Hundredths at = px(16);
    svg_.open(style::kAdmitted);
    svg_.dot({at + px(8), middle}, 350);
    svg_.close();
    at = entry(at + px(18), "admitted: " + std::to_string(yes_));
    svg_.open(style::kDenied);
    svg_.cross({at + px(8), middle}, 300);
    svg_.close();
    at = entry(at + px(18), "denied: " + std::to_string(no_));
    svg_.path({{at, middle}, {at + px(22), middle}}, style::kLine);
    at = entry(at + px(28), words_.level);
    svg_.path({{at, middle}, {at + px(22), middle}}, style::kLimit);
    at = entry(at + px(28), words_.limit);
    if (!words_.boundaries) return;
    svg_.path({{at, middle - px(8)}, {at, middle + px(8)}}, style::kBoundary);
    entry(at + px(8), "a window starts");
  }

  // Writes the words of a legend's entry; answers where the next entry begins, far enough for any usual font.
  Hundredths entry(Hundredths at, const std::string& words) {
    svg_.text({at, kLegendY}, words, style::kText);
    return at + static_cast<Hundredths>(words.size()) * 720 + px(18);
  }

  const Words& words_;
  const Trace& trace_;
  const int yes_, no_;
  const Peak peak_;
  Svg svg_;
};

}  // namespace pictures
