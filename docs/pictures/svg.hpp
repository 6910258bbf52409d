// Writes SVG. Coordinates are whole hundredths of a pixel: no floating point, so the same picture is the same bytes everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pictures {

using Hundredths = std::int64_t;

constexpr Hundredths px(std::int64_t pixels) { return pixels * 100; }

// 1250 is "12.5". REQUIRES: v >= 0.
inline std::string number(Hundredths v) {
  std::string s = std::to_string(v / 100);
  if (v % 100 == 0) return s;
  s += '.';
  s += static_cast<char>('0' + v % 100 / 10);
  if (v % 10 != 0) s += static_cast<char>('0' + v % 10);
  return s;
}

inline std::string escaped(std::string_view text) {
  std::string s;
  for (const char c : text) {
    if (c == '&') s += "&amp;";
    else if (c == '<') s += "&lt;";
    else s += c;
  }
  return s;
}

struct Spot {
  Hundredths x;
  Hundredths y;
};

class Svg {
 public:
  Svg(std::int64_t width, std::int64_t height, std::string_view title, std::string_view description) {
    const std::string w = std::to_string(width), h = std::to_string(height);
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + w + " " + h + "\" width=\"" + w + "\" height=\"" + h +
           "\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
           "<title id=\"title\">" + escaped(title) + "</title>\n<desc id=\"desc\">" + escaped(description) + "</desc>\n";
  }

  // A group whose members share `attributes`.
  void open(std::string_view attributes) { out_ += "<g " + std::string(attributes) + ">\n"; }
  void close() { out_ += "</g>\n"; }

  void rectangle(Spot corner, Hundredths width, Hundredths height, std::string_view attributes) {
    out_ += "<rect" + pair("x", "y", corner) + pair("width", "height", {width, height}) + " " + std::string(attributes) + "/>\n";
  }

  void line(Spot a, Spot b) { out_ += "<path d=\"M" + spot(a) + "L" + spot(b) + "\"/>\n"; }
  void dot(Spot at, Hundredths radius) { out_ += "<circle" + pair("cx", "cy", at) + " r=\"" + number(radius) + "\"/>\n"; }

  void cross(Spot at, Hundredths arm) {
    out_ += "<path d=\"M" + spot({at.x - arm, at.y - arm}) + "L" + spot({at.x + arm, at.y + arm}) + "M" +
            spot({at.x - arm, at.y + arm}) + "L" + spot({at.x + arm, at.y - arm}) + "\"/>\n";
  }

  void path(const std::vector<Spot>& spots, std::string_view attributes = "") {
    out_ += "<path d=\"";
    for (const Spot& s : spots) out_ += (&s == &spots.front() ? "M" : "L") + spot(s);
    out_ += "\" " + std::string(attributes) + "/>\n";
  }

  void text(Spot at, std::string_view words, std::string_view attributes = "") {
    out_ += "<text" + pair("x", "y", at) + (attributes.empty() ? "" : " ") + std::string(attributes) + ">" + escaped(words) +
            "</text>\n";
  }

  std::string finish() && {
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  static std::string spot(Spot s) { return number(s.x) + " " + number(s.y); }
  static std::string pair(const char* a, const char* b, Spot s) {
    return std::string(" ") + a + "=\"" + number(s.x) + "\" " + b + "=\"" + number(s.y) + "\"";
  }

  std::string out_;
};

}  // namespace pictures
