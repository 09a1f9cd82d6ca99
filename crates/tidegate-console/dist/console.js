// node_modules/preact/dist/preact.mjs
var n;
var t;
var r;
var u;
var i;
var f;
var o;
var e;
var l;
var c;
var a;
var s;
var h = Symbol.for("pv");
var p = {};
var y = [];
var v = /^m(i|n|o|s|text|space)$/;
var w = Array.isArray;
var d = y.slice;
var _ = Object.assign;
function g(n3) {
  n3 && n3.parentNode && n3.remove();
}
function k(n3, t4, r4) {
  var u4, i4, f5, o5 = {}, e4 = arguments.length;
  for (f5 in t4) "key" == f5 ? u4 = t4[f5] : "ref" == f5 && "function" != typeof n3 ? i4 = t4[f5] : o5[f5] = t4[f5];
  return e4 > 2 && (o5.children = e4 > 3 ? d.call(arguments, 2) : r4), m(n3, o5, u4, i4, null);
}
function m(r4, u4, i4, f5, o5) {
  var e4 = { type: r4, props: u4, key: i4, ref: f5, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h, __v: o5 || ++t, __i: -1, __u: 0 };
  return !o5 && n.vnode && n.vnode(e4), e4;
}
function $(n3) {
  return n3.children;
}
function x(n3, t4) {
  this.props = n3, this.context = t4, this.__g = 0;
}
function S(n3, t4) {
  if (null == t4) return n3.__ && S(n3.__, n3.__i + 1);
  for (var r4; t4 < n3.__k.length; t4++) if ((r4 = n3.__k[t4]) && r4.__e) return r4.__e;
  return "function" != typeof n3.type || n3.props.__P ? null : S(n3);
}
function C(t4) {
  var r4, u4 = t4.__v, i4 = u4.__e, f5 = [], o5 = [], e4 = t4.__P;
  e4 && ((r4 = _({ constructor: h }, u4)).__v = u4.__v + 1, n.vnode && n.vnode(r4), z(e4, r4, u4, t4.__n, e4.namespaceURI, 32 & u4.__u ? [i4] : null, f5, i4 || S(u4), 32 & u4.__u, o5), r4.__v = u4.__v, r4.__.__k[r4.__i] = r4, E(f5, r4, o5), u4.__ = u4.__e = null, r4.__e != i4 && j(r4));
}
function j(n3) {
  if ((n3 = n3.__) && n3.__c && !n3.props.__P) return n3.__e = null, n3.__k.some(function(t4) {
    return t4 && (n3.__e = t4.__e);
  }), j(n3);
}
function L(t4) {
  (8 & t4.__g || (t4.__g |= 8, u.push(t4), f++)) && i == n.debounceRendering || ((i = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n3, t4 = 1; u.length; ) u.length > t4 && u.sort(o), n3 = u.shift(), t4 = u.length, 8 & n3.__g && C(n3);
  } finally {
    (f = u.length) && (i || queueMicrotask)(H);
  }
}
function I(n3, t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, h5, v4, w5, d5, _4, g5 = u4.__k || y, k4 = t4.length;
  for (l4 = q(r4, t4, g5, l4, k4), s4 = 0; s4 < k4; s4++) null != (v4 = r4.__k[s4]) && (h5 = ~v4.__i && g5[v4.__i] || p, v4.__i = s4, _4 = z(n3, v4, h5, i4, f5, o5, e4, l4, c4, a5), w5 = v4.__e, (h5.ref != v4.ref || 8 & h5.__u) && (h5.ref && G(h5.ref, null, v4, h5), v4.ref && a5.push(v4.ref, v4.__c || w5, v4)), d5 = d5 || w5, 4 & v4.__u ? (l4 = A(v4, l4, n3, !h5.__v), h5.__e && (h5.__e = null)) : "function" == typeof v4.type && void 0 !== _4 ? l4 = _4 : w5 && (l4 = w5.nextSibling), v4.__u &= -21);
  return r4.__e = d5, l4;
}
function q(n3, t4, r4, u4, i4) {
  var f5, o5, e4, l4, c4, a5, s4, p5, y5, v4 = r4.length, d5 = v4, _4 = 0, g5 = 0, k4 = n3.__k = Array(i4);
  for (f5 = 0; f5 < i4; f5++) null != (o5 = t4[f5]) && "boolean" != typeof o5 && "function" != typeof o5 ? ("object" != typeof o5 || o5.constructor === String ? o5 = k4[f5] = m(null, o5) : w(o5) ? o5 = k4[f5] = m($, { children: o5 }) : o5.constructor === h && o5.__b ? o5 = k4[f5] = m(o5.type, o5.props, o5.key, o5.ref, o5.__v) : k4[f5] = o5, l4 = f5 + _4, o5.__ = n3, o5.__b = n3.__b + 1, e4 = null, ~(c4 = o5.__i = P(o5, r4, l4, d5)) && (d5--, (e4 = r4[c4]) && (e4.__u |= 2)), e4 && e4.__v ? (o5.__u |= 16, c4 == l4 - 1 ? _4-- : c4 == l4 + 1 ? _4++ : c4 != l4 && (c4 > l4 ? _4-- : _4++, g5 = 1)) : (~c4 || (i4 > v4 ? _4-- : i4 < v4 && _4++), "function" != typeof o5.type && (o5.__u |= 4))) : k4[f5] = null;
  if (g5) {
    for (a5 = [], s4 = [], f5 = 0; f5 < i4; f5++) if ((o5 = k4[f5]) && 16 & o5.__u) {
      for (_4 = 0, p5 = a5.length; _4 < p5; ) a5[y5 = _4 + p5 >> 1] < o5.__i ? _4 = y5 + 1 : p5 = y5;
      a5[_4] = o5.__i, s4[f5] = _4 + 1;
    }
    for (_4 = a5.length; f5--; ) s4[f5] && (s4[f5] == _4 ? _4-- : k4[f5].__u |= 4);
  }
  if (d5) for (f5 = 0; f5 < v4; f5++) !(e4 = r4[f5]) || 2 & e4.__u || (e4.__e == u4 && (u4 = S(e4)), J(e4, e4));
  return u4;
}
function A(n3, t4, r4, u4) {
  var i4, f5, o5, e4;
  if ("function" == typeof n3.type) {
    if (n3.props.__P) return t4;
    if (i4 = n3.__k) for (f5 = 0; f5 < i4.length; f5++) i4[f5] && (i4[f5].__ = n3, t4 = A(i4[f5], t4, r4, false));
    return t4;
  }
  for (t4 && !t4.parentNode && (t4 = S(n3)) && !t4.parentNode && (t4 = null), o5 = n3.__e, e4 = t4; e4 && 8 == e4.nodeType; ) e4 = e4.nextSibling;
  for (o5 != e4 && (!u4 && r4.moveBefore && o5.parentNode ? r4.moveBefore(o5, t4) : r4.insertBefore(o5, t4 || null)), t4 = o5; (t4 = t4 && t4.nextSibling) && 8 == t4.nodeType && !t4.data.startsWith("$s"); ) ;
  return t4;
}
function P(n3, t4, r4, u4) {
  var i4, f5 = n3.key, o5 = n3.type, e4 = t4[r4], l4 = e4 && !(2 & e4.__u);
  if (null === e4 && null == f5 || l4 && f5 == e4.key && o5 == e4.type) return r4;
  if (u4 > (l4 ? 1 : 0)) {
    for (i4 = r4 - 1; i4 >= 0; i4--) if ((e4 = t4[i4]) && !(2 & e4.__u) && f5 == e4.key && o5 == e4.type) return i4;
    for (i4 = r4 + 1; i4 < t4.length; i4++) if ((e4 = t4[i4]) && !(2 & e4.__u) && f5 == e4.key && o5 == e4.type) return i4;
  }
  return -1;
}
function T(n3, t4, r4) {
  null == r4 && (r4 = ""), "-" == t4[0] ? n3.setProperty(t4, r4) : n3[t4] = r4;
}
function N(n3, t4, r4, u4, i4) {
  var f5, o5;
  if ("style" == t4) if ("string" == typeof r4) n3.style.cssText = r4;
  else {
    if ("string" == typeof u4 && (n3.style.cssText = u4 = ""), u4) for (t4 in u4) r4 && t4 in r4 || T(n3.style, t4);
    if (r4) for (t4 in r4) u4 && r4[t4] == u4[t4] || T(n3.style, t4, r4[t4]);
  }
  else if ("o" == t4[0] && "n" == t4[1]) "function" != typeof r4 && (r4 = null), "function" != typeof u4 && (u4 = null), (n3.__e || (n3.__e = {}))[t4] = r4, r4 && u4 || (o5 = a[t4] || (a[t4] = V(t4)), (n3.__a || (n3.__a = {}))[t4] = c, f5 = t4 != (t4 = t4.replace(l, "$1")), (t4 = t4.slice(2))[0] < "a" && (t4 = t4.toLowerCase()), r4 ? n3.addEventListener(t4, o5, f5) : n3.removeEventListener(t4, o5, f5));
  else {
    if ("http://www.w3.org/2000/svg" == i4) t4 = t4.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t4 && "height" != t4 && "href" != t4 && "list" != t4 && "form" != t4 && "tabIndex" != t4 && "download" != t4 && "rowSpan" != t4 && "colSpan" != t4 && "role" != t4 && "popover" != t4 && t4 in n3) try {
      return void (n3[t4] = null == r4 ? "" : r4);
    } catch (n4) {
    }
    if ("function" == typeof r4) return;
    null == r4 || false === r4 && "-" != t4[4] ? n3.removeAttribute(t4) : n3.setAttribute(t4, "popover" == t4 && 1 == r4 ? "" : r4);
  }
}
function V(t4) {
  return function(r4) {
    var u4 = this.__e;
    if (u4) {
      if (u4 = u4[t4], null == r4[e]) r4[e] = c++;
      else if (r4[e] < this.__a[t4]) return;
      return u4(n.event ? n.event(r4) : r4);
    }
  };
}
function z(t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, p5, v4, d5, k4, b3, m5, M2, C3, j3, L2, H2, q2, A4, O2, P3, T4, N2, V2 = r4.type;
  if (r4.constructor !== h) return null;
  128 & u4.__u && (c4 = 32 & u4.__u, s4 = u4.__c.__z) && (r4.__u |= c4, p5 = o5 = [], 8 == s4.nodeType ? l4 = B(s4, o5) : o5.push(s4), l4 = o5[0] || l4), (s4 = n.__b) && s4(r4);
  n: if ("function" == typeof V2) {
    v4 = e4.length;
    try {
      if (M2 = r4.props, C3 = (s4 = V2.prototype) && s4.render, j3 = (s4 = V2.contextType) && i4[s4.__c], L2 = s4 ? j3 ? j3.props.value : s4.__ : i4, (d5 = u4.__c) ? (r4.__c = d5, 2 & d5.__g && (d5.__g |= 1)) : (C3 ? r4.__c = d5 = new V2(M2, L2) : (r4.__c = d5 = new x(M2, L2), d5.constructor = V2, d5.render = K), j3 && j3.sub(d5), d5.state || (d5.state = {}), d5.__n = i4, d5.__g |= 8, d5.__h = [], d5.__k = []), C3 && (d5.__s || (d5.__s = d5.state), V2.getDerivedStateFromProps && (d5.__s == d5.state && (d5.__s = _({}, d5.__s)), _(d5.__s, V2.getDerivedStateFromProps(M2, d5.__s)))), k4 = d5.props, b3 = d5.state, d5.__v = r4, u4.__c) {
        if (M2 !== k4 && C3 && !V2.getDerivedStateFromProps && d5.componentWillReceiveProps && d5.componentWillReceiveProps(M2, L2), r4.__v == u4.__v && !(8 & d5.__g) || !(4 & d5.__g) && d5.shouldComponentUpdate && false === d5.shouldComponentUpdate(M2, d5.__s, L2)) {
          r4.__v != u4.__v && (d5.props = M2, d5.state = d5.__s, d5.__g &= -9), r4.__e = u4.__e, r4.__k = u4.__k, r4.__k.some(function(n3) {
            n3 && (n3.__ = r4);
          }), y.push.apply(d5.__h, d5.__k), d5.__k = [], d5.__h.length && e4.push(d5), l4 = S(u4);
          break n;
        }
        d5.componentWillUpdate && d5.componentWillUpdate(M2, d5.__s, L2), C3 && d5.componentDidUpdate && d5.__h.push(function() {
          d5.componentDidUpdate(k4, b3, m5);
        });
      } else C3 && !V2.getDerivedStateFromProps && d5.componentWillMount && d5.componentWillMount(), C3 && d5.componentDidMount && d5.__h.push(d5.componentDidMount);
      d5.context = L2, d5.props = M2, d5.__P = t4, d5.__g &= -5, H2 = n.__r, q2 = C3 ? 25 : 0;
      do {
        d5.__g &= -9, H2 && H2(r4), s4 = d5.render(d5.props, d5.state = d5.__s, d5.context);
      } while (8 & d5.__g && ++q2 < 25);
      C3 && (y.push.apply(d5.__h, d5.__k), d5.__k = []), d5.state = d5.__s, d5.getChildContext && (i4 = _({}, i4, d5.getChildContext())), C3 && u4.__c && d5.getSnapshotBeforeUpdate && (m5 = d5.getSnapshotBeforeUpdate(k4, b3)), A4 = s4 && s4.type === $ && null == s4.key ? s4.props.children : s4, M2.__P && (s4 = l4, f5 = (t4 = M2.__P).namespaceURI, c4 = o5 = null, u4.props && u4.props.__P != t4 && (u4.__k.some(function(n3) {
        n3 && J(n3, n3);
      }), u4.__k = null), l4 = u4.__k ? S(u4, 0) : null), l4 = I(t4, w(A4) ? A4 : [A4], r4, u4, i4, f5, o5, e4, l4, c4, a5), M2.__P && (r4.__e = null, l4 = s4), r4.__u &= -161, p5 && p5.some(g), d5.__h.length && e4.push(d5), 1 & d5.__g && (d5.__g &= -4);
    } catch (t5) {
      if (e4.length = v4, r4.__v = null, c4 || o5) if (t5 && t5.then) {
        if (r4.__u |= 128 | c4, o5) {
          for (~(T4 = o5.indexOf(l4 || void 0)) || (T4 = o5.length); (N2 = o5[T4 - 1]) && 8 == N2.nodeType; ) T4--;
          for (; T4 < o5.length; T4++) if (N2 = o5[T4]) if (o5[T4] = null, O2) {
            if (N2 == P3) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P3 = B(O2 = N2));
          }
        }
        if (!O2) {
          for (; l4 && 8 == l4.nodeType && l4.nextSibling; ) l4 = l4.nextSibling;
          O2 = l4;
        }
        (s4 = B(O2 = r4.__c.__z || (r4.__c.__z = O2))) ? (r4.__e = O2, l4 = s4) : r4.__e = l4, l4 = l4 && l4.nextSibling;
      } else o5 && o5.some(g);
      else r4.__e = u4.__e;
      r4.__k || (r4.__k = u4.__k || []), t5 && t5.then || D(r4), n.__e(t5, r4, u4);
    }
  } else l4 = r4.__e = F(u4.__e, r4, u4, i4, f5, o5, e4, c4, a5, t4);
  return (s4 = n.diffed) && s4(r4), l4;
}
function B(n3, t4) {
  if (n3 && 8 == n3.nodeType && n3.data.startsWith("$s")) for (var r4 = 1; n3 = n3.nextSibling; ) {
    if (8 == n3.nodeType) {
      if (n3.data.startsWith("$s")) r4++;
      else if (n3.data.startsWith("/$s") && !--r4) return n3;
    }
    t4 && t4.push(n3);
  }
}
function D(n3) {
  n3 && (n3.__c && (n3.__c.__g |= 4), n3.__k && n3.__k.some(D));
}
function E(t4, r4, u4) {
  for (var i4 = 0; i4 < u4.length; ) G(u4[i4++], u4[i4++], u4[i4++]);
  n.__c && n.__c(r4, t4), t4.some(function(r5) {
    try {
      t4 = r5.__h, r5.__h = [], t4.some(function(n3) {
        n3.call(r5);
      });
    } catch (t5) {
      n.__e(t5, r5.__v);
    }
  });
}
function F(t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, h5, y5, _4, k4, b3, m5, M2, $2 = u4.props || p, x3 = r4.props, C3 = r4.type;
  if ("svg" == C3 ? f5 = "http://www.w3.org/2000/svg" : "math" == C3 ? f5 = "http://www.w3.org/1998/Math/MathML" : f5 || (f5 = "http://www.w3.org/1999/xhtml"), o5) {
    for (s4 = 0; s4 < o5.length; s4++) if ((k4 = o5[s4]) && (C3 ? k4.localName == C3 : 3 == k4.nodeType)) {
      t4 = k4, o5[s4] = null;
      break;
    }
  }
  if (!t4) {
    if (M2 = a5.ownerDocument || document, !C3) return M2.createTextNode(x3);
    t4 = M2.createElementNS(f5, C3, x3.is ? x3 : a5), l4 && (n.__m && n.__m(r4, o5), l4 = false), o5 = null;
  }
  if (C3) {
    if (a5 = "template" == C3 && t4.content || t4, o5 = "textarea" == C3 && null != x3.defaultValue ? null : o5 && d.call(a5.childNodes), !l4 && o5) for ($2 = {}, s4 = 0; s4 < t4.attributes.length; s4++) $2[(k4 = t4.attributes[s4]).name] = k4.value;
    for (s4 in $2) k4 = $2[s4], "dangerouslySetInnerHTML" == s4 ? y5 = k4 : "children" == s4 || s4 in x3 || "value" == s4 && "defaultValue" in x3 || "checked" == s4 && "defaultChecked" in x3 || N(t4, s4, null, k4, f5);
    for (s4 in x3) k4 = x3[s4], "children" == s4 ? _4 = k4 : "dangerouslySetInnerHTML" == s4 ? h5 = k4 : "value" == s4 ? b3 = k4 : "checked" == s4 ? m5 = k4 : l4 && "function" != typeof k4 || $2[s4] === k4 || N(t4, s4, k4, $2[s4], f5);
    h5 ? (l4 || y5 && (h5.__html == y5.__html || h5.__html == t4.innerHTML) || (t4.innerHTML = h5.__html), r4.__k = []) : (y5 && (t4.textContent = ""), ("foreignObject" == C3 || "http://www.w3.org/1998/Math/MathML" == f5 && v.test(C3)) && (f5 = "http://www.w3.org/1999/xhtml"), I(a5, w(_4) ? _4 : [_4], r4, u4, i4, f5, o5, e4, o5 ? o5[0] : u4.__k && S(u4, 0), l4, c4), o5 && o5.some(g)), l4 && "textarea" != C3 || (s4 = "value", "progress" == C3 && null == b3 ? t4.removeAttribute(s4) : null == b3 || b3 === t4[s4] && ("progress" != C3 || b3) || N(t4, s4, b3, $2[s4], f5), s4 = "checked", null != m5 && m5 != t4[s4] && N(t4, s4, m5, $2[s4], f5));
  } else $2 === x3 || l4 && t4.data == x3 || (t4.data = x3);
  return t4;
}
function G(t4, r4, u4, i4) {
  try {
    "function" == typeof t4 ? r4 ? r4.__x = t4(r4) || 1 : i4 && (i4 = i4.__c || i4.__e) && (r4 = i4.__x) && (i4.__x = null, "function" == typeof r4 ? r4() : t4(null)) : t4.current = r4;
  } catch (t5) {
    n.__e(t5, u4);
  }
}
function J(t4, r4, u4) {
  var i4, f5, o5, e4;
  if (n.unmount && n.unmount(t4), !(i4 = t4.ref) || i4.current && i4.current != t4.__e || G(i4, null, r4, t4), i4 = t4.__c) {
    if (i4.componentWillUnmount) try {
      i4.componentWillUnmount();
    } catch (t5) {
      n.__e(t5, r4);
    }
    i4.__P = i4.__n = null;
  }
  if (i4 = t4.__k) for (e4 = 0; e4 < i4.length; e4++) i4[e4] && J(i4[e4], r4, "function" != typeof t4.type || u4 && !t4.props.__P);
  !u4 && (i4 = t4.__c) && (i4 = i4.__z) && (f5 = B(i4, o5 = [])) && (i4 == t4.__e && o5.some(g), g(f5), g(i4)), u4 || g(t4.__e), t4.__e = t4.__c = t4.__ = null;
}
function K(n3, t4, r4) {
  return this.constructor(n3, r4);
}
function Q(t4, r4) {
  var u4, i4, f5, o5;
  n.__ && n.__(t4, r4), 9 == r4.nodeType && (r4 = r4.documentElement), i4 = (u4 = t4 && 32 & t4.__u) ? null : r4.__k, r4.__k = m($, { children: [t4] }), f5 = [], o5 = [], z(r4, r4.__k, i4 || p, p, r4.namespaceURI, i4 ? null : r4.firstChild ? d.call(r4.childNodes) : null, f5, i4 ? i4.__e : r4.firstChild, u4, o5), E(f5, r4.__k, o5), r4.__k.props.children = null;
}
n = { __e: function(n3, t4, r4, u4) {
  for (var i4, o5, e4; t4 = t4.__; ) if ((i4 = t4.__c) && !(1 & i4.__g)) {
    i4.__g |= 4;
    try {
      if ((e4 = (o5 = i4.constructor) && o5.getDerivedStateFromError) && i4.setState(o5.getDerivedStateFromError(n3)), i4.componentDidCatch && (i4.componentDidCatch(n3, u4 || {}), e4 = 1), e4 && 8 & i4.__g) return void (i4.__g |= 2);
    } catch (t5) {
      n3 = t5;
    }
  }
  throw f = 0, n3;
} }, t = 0, r = function(n3) {
  return null != n3 && n3.constructor === h;
}, x.prototype.setState = function(n3, t4) {
  var r4 = this.__s;
  r4 && r4 != this.state || (r4 = this.__s = _({}, this.state)), "function" == typeof n3 && (n3 = n3(_({}, r4), this.props)), n3 && (_(r4, n3), this.__v && (t4 && this.__k.push(t4), L(this)));
}, x.prototype.forceUpdate = function(n3) {
  this.__v && (this.__g |= 4, n3 && this.__h.push(n3), L(this));
}, x.prototype.render = $, u = [], f = 0, o = function(n3, t4) {
  return n3.__v.__b - t4.__v.__b;
}, e = Symbol(), l = /(PointerCapture)$|Capture$/i, c = 0, a = {}, s = 0;

// node_modules/preact/hooks/dist/hooks.mjs
var t2;
var r2;
var u2;
var i2;
var o2 = Object.is;
var f2 = 0;
var c2 = [];
var e2 = [];
var a2 = n;
var v2 = a2.__b;
var l2 = a2.__r;
var m2 = a2.diffed;
var h2 = a2.__c;
var s2 = a2.unmount;
var p2 = a2.__;
function y2(n3, t4) {
  a2.__h && a2.__h(r2, n3, f2 || t4), f2 = 0;
  var u4 = r2.__H || (r2.__H = { __: [], __h: [] });
  return n3 >= u4.__.length && u4.__.push({}), u4.__[n3];
}
function d2(n3) {
  return f2 = 1, _2(G2, n3);
}
function _2(n3, u4, i4) {
  var f5 = y2(t2++, 2);
  if (f5.t = n3, !f5.__c && (f5.__ = [i4 ? i4(u4) : G2(void 0, u4), function(n4) {
    var t4 = (f5.__N || f5.__)[0], r4 = f5.t(t4, n4);
    o2(t4, r4) || (f5.__N = [r4, f5.__[1]], f5.__c.setState({}));
  }], f5.__c = r2, !r2.__f)) {
    r2.__f = true;
    var c4 = r2.shouldComponentUpdate;
    r2.shouldComponentUpdate = function(n4, t4, r4) {
      var u5 = this.__H;
      if (!u5) return true;
      var i5 = false, f6 = this.props != n4;
      if (u5.__.some(function(n5) {
        n5.__N && (i5 = true, o2(n5.__[0], n5.__N[0]) || (f6 = true));
      }), c4) {
        var e4 = c4.call(this, n4, t4, r4);
        return i5 ? e4 || f6 : e4;
      }
      return !i5 || f6;
    };
  }
  return f5.__;
}
function A2(n3, u4) {
  var i4 = y2(t2++, 3);
  !a2.__s && E2(i4.__H, u4) && (i4.__P = true, i4.__ = n3, i4.u = u4, r2.__H.__h.push(i4));
}
function F2(n3, u4) {
  var i4 = y2(t2++, 4);
  !a2.__s && E2(i4.__H, u4) && (i4.__P = false, i4.__ = n3, i4.u = u4, r2.__h.push(i4));
}
function T2(n3) {
  return f2 = 5, w2(function() {
    return { current: n3 };
  }, []);
}
function w2(n3, r4) {
  var u4 = y2(t2++, 7);
  return E2(u4.__H, r4) && (u4.__ = n3(), u4.__H = r4), u4.__;
}
function P2() {
  var n3 = y2(t2++, 11);
  if (!n3.__) {
    for (var u4 = r2.__v; !u4.__m && u4.__; ) u4 = u4.__;
    var i4 = u4.__m || (u4.__m = [0, 0]);
    n3.__ = "P" + i4[0] + "-" + i4[1]++;
  }
  return n3.__;
}
function g2() {
  var n3;
  do {
    for (; n3 = e2.shift(); ) try {
      C2(n3);
    } catch (t5) {
      a2.__e(t5, { __: (n3 = n3.__P) && n3.__v });
    }
    for (; n3 = c2.shift(); ) {
      var t4 = n3.__H;
      if (n3.__P && t4) try {
        t4.__h.some(C2), t4.__h.some(D2), t4.__h = [];
      } catch (r4) {
        t4.__h = [], a2.__e(r4, n3.__v);
      }
    }
  } while (e2.length);
}
a2.__b = function(n3) {
  r2 = null, v2 && v2(n3);
}, a2.__ = function(n3, t4) {
  n3 && t4.__k && t4.__k.__m && (n3.__m = t4.__k.__m), p2 && p2(n3, t4);
}, a2.__r = function(n3) {
  l2 && l2(n3), t2 = 0;
  var i4 = (r2 = n3.__c).__H;
  i4 && (u2 == r2 ? r2.__h = [] : (i4.__h.some(C2), i4.__h.some(D2), t2 = 0), i4.__h = [], i4.__.some(function(n4) {
    n4.__N && (n4.__ = n4.__N), n4.u = n4.__N = void 0;
  })), u2 = r2;
}, a2.diffed = function(n3) {
  m2 && m2(n3);
  var t4 = n3.__c;
  t4 && t4.__H && (t4.__H.__h.length && B2(c2.push(t4)), t4.__H.__.some(function(n4) {
    n4.u && (n4.__H = n4.u);
  })), u2 = r2 = null;
}, a2.__c = function(n3, t4) {
  t4.some(function(n4) {
    try {
      n4.__h.some(C2), n4.__h = n4.__h.filter(function(n5) {
        return !n5.__ || D2(n5);
      });
    } catch (t5) {
      n4.__h = [function() {
        throw t5;
      }];
    }
  }), h2 && h2(n3, t4);
}, a2.unmount = function(n3) {
  s2 && s2(n3);
  var t4, r4, u4 = n3.__c;
  u4 && u4.__H && (u4.__H.__.some(function(u5) {
    try {
      if (u5.__P && u5.__c) {
        if (void 0 === r4) {
          for (r4 = n3.__; r4 && (!r4.__c || !r4.__c.__P); ) r4 = r4.__;
          r4 = r4 && r4.__c;
        }
        u5.__P = r4, B2(e2.push(u5));
      } else C2(u5);
    } catch (n4) {
      t4 = n4;
    }
  }), u4.__H = void 0, t4 && a2.__e(t4, u4.__v));
};
var k2 = "function" == typeof requestAnimationFrame;
function z2(n3) {
  var t4, r4 = function() {
    clearTimeout(u4), k2 && cancelAnimationFrame(t4), setTimeout(n3);
  }, u4 = setTimeout(r4, 35);
  k2 && (t4 = requestAnimationFrame(r4));
}
function B2(n3) {
  1 != n3 && i2 == a2.requestAnimationFrame || ((i2 = a2.requestAnimationFrame) || z2)(g2);
}
function C2(n3) {
  var t4 = r2, u4 = n3.__c;
  "function" == typeof u4 && (n3.__c = void 0, u4()), r2 = t4;
}
function D2(n3) {
  var t4 = r2;
  n3.__c = n3.__(), r2 = t4;
}
function E2(n3, t4) {
  return !n3 || n3.length != t4.length || t4.some(function(t5, r4) {
    return !o2(t5, n3[r4]);
  });
}
function G2(n3, t4) {
  return "function" == typeof t4 ? t4(n3) : t4;
}

// node_modules/@preact/signals-core/dist/signals-core.module.js
var i3 = Symbol.for("preact-signals");
function t3() {
  if (!(v3 > 1)) {
    var i4, t4 = false;
    !(function() {
      var i5 = c3;
      c3 = void 0;
      while (void 0 !== i5) {
        var t5 = i5.S;
        if (t5.v === i5.v) {
          for (var r5 = t5.t; void 0 !== r5; r5 = r5.x) if (r5.i === i5.i) r5.i = t5.i;
        }
        i5 = i5.o;
      }
    })();
    while (void 0 !== h3) {
      var r4 = h3;
      h3 = void 0;
      s3++;
      while (void 0 !== r4) {
        var n3 = r4.u;
        r4.u = void 0;
        r4.f &= -3;
        if (!(8 & r4.f) && w3(r4)) try {
          r4.c();
        } catch (r5) {
          if (!t4) {
            i4 = r5;
            t4 = true;
          }
        }
        r4 = n3;
      }
    }
    s3 = 0;
    v3--;
    if (t4) throw i4;
  } else v3--;
}
function r3(i4) {
  if (v3 > 0) return i4();
  u3 = ++e3;
  v3++;
  try {
    return i4();
  } finally {
    t3();
  }
}
var n2;
var o3 = void 0;
function f3(i4) {
  var t4 = o3, r4 = n2;
  o3 = void 0;
  n2 = void 0;
  try {
    return i4();
  } finally {
    o3 = t4;
    n2 = r4;
  }
}
var h3 = void 0;
var v3 = 0;
var s3 = 0;
var e3 = 0;
var u3 = 0;
var c3 = void 0;
var a3 = 0;
function d3(i4) {
  if (void 0 !== o3) {
    var t4 = i4.n;
    if (void 0 === t4 || t4.t !== o3) {
      t4 = { i: 0, S: i4, p: o3.s, n: void 0, t: o3, e: void 0, x: void 0, r: t4 };
      if (void 0 !== o3.s) o3.s.n = t4;
      o3.s = t4;
      i4.n = t4;
      if (32 & o3.f) i4.S(t4);
      return t4;
    } else if (-1 === t4.i) {
      t4.i = 0;
      if (void 0 !== t4.n) {
        t4.n.p = t4.p;
        if (void 0 !== t4.p) t4.p.n = t4.n;
        t4.p = o3.s;
        t4.n = void 0;
        o3.s.n = t4;
        o3.s = t4;
      }
      return t4;
    }
  }
}
function l3(i4, t4) {
  this.v = i4;
  this.i = 0;
  this.n = void 0;
  this.t = void 0;
  this.l = 0;
  this.W = null == t4 ? void 0 : t4.watched;
  this.Z = null == t4 ? void 0 : t4.unwatched;
  this.name = null == t4 ? void 0 : t4.name;
}
l3.prototype.brand = i3;
l3.prototype.h = function() {
  return true;
};
l3.prototype.S = function(i4) {
  var t4 = this, r4 = this.t;
  if (r4 !== i4 && void 0 === i4.e) {
    i4.x = r4;
    this.t = i4;
    if (void 0 !== r4) r4.e = i4;
    else f3(function() {
      var i5;
      null == (i5 = t4.W) || i5.call(t4);
    });
  }
};
l3.prototype.U = function(i4) {
  var t4 = this;
  if (void 0 !== this.t) {
    var r4 = i4.e, n3 = i4.x;
    if (void 0 !== r4) {
      r4.x = n3;
      i4.e = void 0;
    }
    if (void 0 !== n3) {
      n3.e = r4;
      i4.x = void 0;
    }
    if (i4 === this.t) {
      this.t = n3;
      if (void 0 === n3) f3(function() {
        var i5;
        null == (i5 = t4.Z) || i5.call(t4);
      });
    }
  }
};
l3.prototype.subscribe = function(i4) {
  var t4 = this;
  return x2(function() {
    var r4 = t4.value;
    f3(function() {
      return i4(r4);
    });
  }, { name: "sub" });
};
l3.prototype.valueOf = function() {
  return this.value;
};
l3.prototype.toString = function() {
  return this.value + "";
};
l3.prototype.toJSON = function() {
  return this.value;
};
l3.prototype.peek = function() {
  var i4 = this;
  return f3(function() {
    return i4.value;
  });
};
Object.defineProperty(l3.prototype, "value", { get: function() {
  var i4 = d3(this);
  if (void 0 !== i4) i4.i = this.i;
  return this.v;
}, set: function(i4) {
  if (i4 !== this.v) {
    if (s3 > 100) throw new Error("Cycle detected");
    !(function(i5) {
      if (0 !== v3 && 0 === s3) {
        if (i5.l !== u3) {
          i5.l = u3;
          c3 = { S: i5, v: i5.v, i: i5.i, o: c3 };
        }
      }
    })(this);
    this.v = i4;
    this.i++;
    a3++;
    v3++;
    try {
      for (var r4 = this.t; void 0 !== r4; r4 = r4.x) r4.t.N();
    } finally {
      t3();
    }
  }
} });
function y3(i4, t4) {
  return new l3(i4, t4);
}
function w3(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) if (t4.S.i !== t4.i || !t4.S.h() || t4.S.i !== t4.i) return true;
  return false;
}
function b(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) {
    var r4 = t4.S.n;
    if (void 0 !== r4) t4.r = r4;
    t4.S.n = t4;
    t4.i = -1;
    if (void 0 === t4.n) {
      i4.s = t4;
      break;
    }
  }
}
function _3(i4) {
  var t4 = i4.s, r4 = void 0;
  while (void 0 !== t4) {
    var n3 = t4.p;
    if (-1 === t4.i) {
      t4.S.U(t4);
      if (void 0 !== n3) n3.n = t4.n;
      if (void 0 !== t4.n) t4.n.p = n3;
    } else r4 = t4;
    t4.S.n = t4.r;
    if (void 0 !== t4.r) t4.r = void 0;
    t4 = n3;
  }
  i4.s = r4;
}
function j2(i4, t4) {
  l3.call(this, void 0, t4);
  this.x = i4;
  this.s = void 0;
  this.g = a3 - 1;
  this.f = 4;
}
j2.prototype = new l3();
j2.prototype.h = function() {
  this.f &= -3;
  if (1 & this.f) return false;
  if (32 == (36 & this.f)) return true;
  this.f &= -5;
  if (this.g === a3) return true;
  this.g = a3;
  this.f |= 1;
  if (this.i > 0 && !w3(this)) {
    this.f &= -2;
    return true;
  }
  var i4 = o3;
  try {
    b(this);
    o3 = this;
    var t4 = this.x();
    if (16 & this.f || this.v !== t4 || 0 === this.i) {
      this.v = t4;
      this.f &= -17;
      this.i++;
    }
  } catch (i5) {
    this.v = i5;
    this.f |= 16;
    this.i++;
  }
  o3 = i4;
  _3(this);
  this.f &= -2;
  return true;
};
j2.prototype.S = function(i4) {
  if (void 0 === this.t) {
    this.f |= 36;
    for (var t4 = this.s; void 0 !== t4; t4 = t4.n) t4.S.S(t4);
  }
  l3.prototype.S.call(this, i4);
};
j2.prototype.U = function(i4) {
  if (void 0 !== this.t) {
    l3.prototype.U.call(this, i4);
    if (void 0 === this.t) {
      this.f &= -33;
      for (var t4 = this.s; void 0 !== t4; t4 = t4.n) t4.S.U(t4);
    }
  }
};
j2.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 6;
    for (var i4 = this.t; void 0 !== i4; i4 = i4.x) i4.t.N();
  }
};
Object.defineProperty(j2.prototype, "value", { get: function() {
  if (1 & this.f) throw new Error("Cycle detected");
  var i4 = d3(this);
  this.h();
  if (void 0 !== i4) i4.i = this.i;
  if (16 & this.f) throw this.v;
  return this.v;
} });
function O(i4, t4) {
  return new j2(i4, t4);
}
function p3(i4) {
  var r4 = i4.j;
  i4.j = void 0;
  if ("function" == typeof r4) {
    v3++;
    var n3 = o3;
    o3 = void 0;
    try {
      r4();
    } catch (t4) {
      i4.f &= -2;
      i4.f |= 8;
      g3(i4);
      throw t4;
    } finally {
      o3 = n3;
      t3();
    }
  }
}
function g3(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) t4.S.U(t4);
  i4.x = void 0;
  i4.s = void 0;
  p3(i4);
}
function S2(i4) {
  if (o3 !== this) throw new Error("Out-of-order effect");
  _3(this);
  o3 = i4;
  this.f &= -2;
  try {
    if (8 & this.f) g3(this);
  } finally {
    t3();
  }
}
function m3(i4, t4) {
  this.x = i4;
  this.j = void 0;
  this.s = void 0;
  this.u = void 0;
  this.f = 32;
  this.name = null == t4 ? void 0 : t4.name;
  if (n2) n2.push(this);
}
m3.prototype.c = function() {
  var i4 = this.S();
  try {
    if (8 & this.f) return;
    if (void 0 === this.x) return;
    var t4 = this.x();
    if ("function" == typeof t4) this.j = t4;
  } finally {
    i4();
  }
};
m3.prototype.S = function() {
  if (1 & this.f) throw new Error("Cycle detected");
  this.f |= 1;
  this.f &= -9;
  p3(this);
  b(this);
  v3++;
  var i4 = o3;
  o3 = this;
  return S2.bind(this, i4);
};
m3.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 2;
    this.u = h3;
    h3 = this;
  }
};
m3.prototype.d = function() {
  this.f |= 8;
  if (!(1 & this.f)) g3(this);
};
m3.prototype.dispose = function() {
  this.d();
};
function x2(i4, t4) {
  var r4 = new m3(i4, t4);
  try {
    r4.c();
  } catch (i5) {
    r4.d();
    throw i5;
  }
  var n3 = r4.d.bind(r4);
  n3[Symbol.dispose] = n3;
  return n3;
}

// node_modules/@preact/signals/dist/signals.module.js
var h4;
var d4;
var p4;
var m4 = "undefined" != typeof window && !!window.__PREACT_SIGNALS_DEVTOOLS__;
var g4 = [];
x2(function() {
  h4 = this.N;
})();
function b2(i4, n3) {
  n[i4] = n3.bind(null, n[i4] || function() {
  });
}
function y4(i4) {
  if (p4) {
    var n3 = p4;
    p4 = void 0;
    n3();
  }
  p4 = i4 && i4.S();
}
function w4(i4) {
  var n3 = this, r4 = i4.data, t4 = useSignal(r4);
  t4.name = "ReactiveDom";
  t4.value = r4;
  var e4 = w2(function() {
    var i5 = n3, r5 = n3.__v;
    while (r5 = r5.__) if (r5.__c) {
      r5.__c.__$f |= 4;
      break;
    }
    var o5 = O(function() {
      var i6 = t4.value.value;
      return 0 === i6 ? 0 : true === i6 ? "" : i6 || "";
    }), e5 = O(function() {
      return !Array.isArray(o5.value) && !r(o5.value);
    }), u5 = x2(function() {
      this.N = M;
      if (e5.value) {
        var n4 = o5.value;
        if (i5.__v && i5.__v.__e && 3 === i5.__v.__e.nodeType) i5.__v.__e.data = n4;
      }
    }), c5 = n3.__$u.d;
    n3.__$u.d = function() {
      u5();
      c5.call(this);
    };
    return [e5, o5];
  }, []), u4 = e4[0], c4 = e4[1];
  return u4.value ? c4.peek() : c4.value;
}
w4.displayName = "ReactiveTextNode";
Object.defineProperties(l3.prototype, { constructor: { configurable: true, value: k($, null).constructor }, type: { configurable: true, value: w4 }, props: { configurable: true, get: function() {
  var i4 = this;
  return { data: { get value() {
    return i4.value;
  } } };
} }, __b: { configurable: true, value: 1 } });
b2("__b", function(i4, n3) {
  y4();
  d4 = void 0;
  if ("string" == typeof n3.type) {
    var r4, t4 = n3.props;
    for (var f5 in t4) if ("children" !== f5) {
      var o5 = t4[f5];
      if (o5 instanceof l3) {
        if (!r4) n3.__np = r4 = {};
        r4[f5] = o5;
        t4[f5] = o5.peek();
      }
    }
  }
  i4(n3);
});
b2("__r", function(i4, r4) {
  i4(r4);
  if (r4.type !== $) {
    y4();
    var t4, f5 = r4.__c;
    if (f5) {
      f5.__$f &= -2;
      if (void 0 === (t4 = f5.__$u)) f5.__$u = t4 = (function(i5, n3) {
        var r5;
        x2(function() {
          r5 = this;
        }, { name: n3 });
        r5.c = i5;
        return r5;
      })(/* @__PURE__ */ (function(i5) {
        return function() {
          var n3;
          if (m4) null == (n3 = this.y) || n3.call(this);
          i5.__$f |= 1;
          i5.setState({});
        };
      })(f5), "function" == typeof r4.type ? r4.type.displayName || r4.type.name : "");
    }
    d4 = f5;
    y4(t4);
  }
});
b2("__e", function(i4, n3, r4, t4) {
  y4();
  d4 = void 0;
  i4(n3, r4, t4);
});
b2("diffed", function(i4, n3) {
  y4();
  d4 = void 0;
  var r4;
  if ("string" == typeof n3.type && (r4 = n3.__e)) {
    var t4 = n3.__np, f5 = n3.props, o5 = r4.U;
    if (o5) for (var e4 in o5) {
      var u4 = o5[e4];
      if (!(void 0 === u4 || t4 && e4 in t4)) {
        u4.d();
        o5[e4] = void 0;
      }
    }
    if (t4) {
      if (!o5) {
        o5 = {};
        r4.U = o5;
      }
      for (var a5 in t4) {
        var c4 = o5[a5], v4 = t4[a5];
        if (void 0 === c4) {
          c4 = k3(r4, a5, v4, f5);
          o5[a5] = c4;
        } else c4.o(v4, f5);
      }
    }
  }
  i4(n3);
});
function k3(i4, n3, r4, t4) {
  var f5 = n3 in i4 && void 0 === i4.ownerSVGElement, o5 = y3(r4);
  return { o: function(i5, n4) {
    o5.value = i5;
    t4 = n4;
  }, d: x2(function() {
    this.N = M;
    var r5 = o5.value.value;
    if (t4[n3] !== r5) {
      t4[n3] = r5;
      if (f5) i4[n3] = r5;
      else if (null != r5 && (false !== r5 || "-" === n3[4])) i4.setAttribute(n3, r5);
      else i4.removeAttribute(n3);
    }
  }) };
}
b2("unmount", function(i4, n3) {
  if ("string" == typeof n3.type) {
    var r4 = n3.__e;
    if (r4) {
      var t4 = r4.U;
      if (t4) {
        r4.U = void 0;
        for (var f5 in t4) {
          var o5 = t4[f5];
          if (o5) o5.d();
        }
      }
    }
    var e4 = n3.__np;
    if (e4) {
      var u4 = n3.props;
      for (var a5 in e4) u4[a5] = e4[a5];
    }
    n3.__np = void 0;
  } else {
    var c4 = n3.__c;
    if (c4) {
      c4.__$f |= 8;
      var v4 = c4.__$u;
      if (v4) {
        c4.__$u = void 0;
        v4.d();
      }
    }
  }
  i4(n3);
});
b2("__h", function(i4, n3, r4, t4) {
  if (t4 < 3) n3.__$f |= 2;
  i4(n3, r4, t4);
});
x.prototype.shouldComponentUpdate = function(i4, n3) {
  if (this.__R) return true;
  var r4 = this.__$u, t4 = r4 && void 0 !== r4.s;
  for (var f5 in n3) return true;
  if (this.__f || "boolean" == typeof this.u && true === this.u) {
    var o5 = 2 & this.__$f;
    if (!(t4 || o5 || 4 & this.__$f)) return true;
    if (1 & this.__$f) return true;
  } else {
    if (!(t4 || 4 & this.__$f)) return true;
    if (3 & this.__$f) return true;
  }
  for (var e4 in i4) if ("__source" !== e4 && i4[e4] !== this.props[e4]) return true;
  for (var u4 in this.props) if (!(u4 in i4)) return true;
  return false;
};
function useSignal(i4, n3) {
  return w2(function() {
    return y3(i4, n3);
  }, []);
}
var A3 = function(i4) {
  queueMicrotask(function() {
    queueMicrotask(i4);
  });
};
function F3() {
  r3(function() {
    var i4;
    while (i4 = g4.shift()) h4.call(i4);
  });
}
function M() {
  if (1 === g4.push(this)) (n.requestAnimationFrame || A3)(F3);
}

// src/api/home.ts
var home = new URL("..", import.meta.url).href.replace(/\/$/, "");

// src/api/pkce.ts
var base64url = (bytes2) => btoa(String.fromCharCode(...bytes2)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
var randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
async function challengeOf(verifier) {
  if (!crypto.subtle) throw new Error("A browser signs in only at an address with https://, or at http://localhost. Open the console there.");
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}
function claimsOf(token) {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  const bytes2 = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes2));
}

// src/api/session.ts
var session = y3(null);
var sessionEnded = y3(false);
var actor = y3(null);
var claims = O(() => (actor.value ?? session.value)?.claims ?? null);
var isMember = O(() => claims.value?.kind === "member");
var userName = (of) => of.sub.slice(of.sub.indexOf("/") + 1);
var accessToken = () => (actor.value ?? session.value)?.access;
var PENDING = "tidegate.console.pending";
var RETURNING = "tidegate.console.returning";
var CHANNEL = "tidegate.console.sign-in";
var POPUP = "popup-";
var redirectUri = () => `${home}/console/`;
var defaultClient = () => new URLSearchParams(location.search).get("client_id") ?? document.querySelector('meta[name="tidegate-client"]')?.content ?? "tidegate";
async function authorizeUrl(pending) {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: pending.clientId,
    redirect_uri: redirectUri(),
    state: pending.state,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: "S256"
  });
  if (pending.database) query.set("database", pending.database);
  return `${home}/auth?${query}`;
}
var begin = (clientId, database, prefix = "") => ({ state: prefix + randomText(), verifier: randomText(), clientId, database, hash: location.hash });
async function signIn(clientId, database) {
  const pending = begin(clientId, database);
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  location.assign(await authorizeUrl(pending));
}
async function signInAgain() {
  const { clientId, claims: was } = session.value ?? {};
  const pending = begin(clientId ?? defaultClient(), was?.database ?? "", POPUP);
  const channel = new BroadcastChannel(CHANNEL);
  const popup = window.open(await authorizeUrl(pending), "tidegate-sign-in", "popup,width=480,height=680");
  if (!popup) throw new Error("The browser has blocked the window for signing in. Allow it and try again.");
  const search = await new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      if (new URLSearchParams(data).get("state") === pending.state) resolve(data);
    };
  });
  channel.close();
  await redeem(new URLSearchParams(search), pending);
  sessionEnded.value = false;
}
async function resume() {
  const answer = new URLSearchParams(location.search);
  const state = answer.get("state");
  if (state?.startsWith(POPUP)) {
    new BroadcastChannel(CHANNEL).postMessage(location.search);
    window.close();
    return "You are signed in. This window can be closed.";
  }
  const stored2 = sessionStorage.getItem(PENDING);
  if (state && stored2) return comeBack(answer, JSON.parse(stored2));
  const returning = sessionStorage.getItem(RETURNING);
  const asked = answer.get("signin");
  if (returning || asked) {
    const { clientId, database } = returning ? JSON.parse(returning) : { clientId: defaultClient(), database: asked ?? "" };
    await signIn(clientId, database);
    return new Promise(() => void 0);
  }
  return null;
}
async function comeBack(answer, pending) {
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", `${location.pathname}${pending.hash}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
  try {
    await redeem(answer, pending);
  } catch (error) {
    sessionStorage.removeItem(RETURNING);
    return error instanceof Error ? error.message : String(error);
  }
  const database = session.value?.claims.database ?? "";
  sessionStorage.setItem(RETURNING, JSON.stringify({ clientId: pending.clientId, database }));
  return null;
}
async function redeem(answer, pending) {
  if (answer.get("state") !== pending.state) throw new Error("This answer belongs to another sign-in. Try again.");
  const code = answer.get("code");
  if (!code) throw new Error(answer.get("error_description") ?? "The sign-in was not completed.");
  const metadata = await (await fetch(`${home}/.well-known/oauth-authorization-server`)).json();
  if (answer.get("iss") !== metadata.issuer) throw new Error("The answer comes from another server.");
  const error = await grant(pending.clientId, {
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri(),
    code_verifier: pending.verifier
  });
  if (error) throw new Error(error);
}
async function grant(clientId, members2) {
  const answer = await fetch(`${home}/api/v4/oauth`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_id: clientId, ...members2 })
  });
  const body = await answer.json();
  if (!answer.ok) {
    const text = body.error_description ?? body.error ?? `The server answered with ${answer.status}.`;
    if (answer.status === 429 || answer.status >= 500) throw new Error(text);
    return text;
  }
  const read3 = claimsOf(body.access_token);
  session.value = { access: body.access_token, refresh: body.refresh_token, claims: read3, clientId };
  renewBefore(read3.exp);
  return null;
}
var timer;
function renewBefore(exp) {
  clearTimeout(timer);
  const left = exp * 1e3 - Date.now();
  timer = setTimeout(() => void renew(), Math.max(5e3, left - Math.min(12e4, left / 2)));
}
var renewing = null;
function renew() {
  renewing ??= refresh().finally(() => renewing = null);
  return renewing;
}
async function refresh() {
  const current = session.value;
  if (!current) return false;
  try {
    const error = await grant(current.clientId, { grant_type: "refresh_token", refresh_token: current.refresh });
    if (error) sessionEnded.value = true;
    return !error;
  } catch {
    timer = setTimeout(() => void renew(), 15e3);
    return false;
  }
}
async function signOut() {
  const current = session.value;
  clearTimeout(timer);
  sessionStorage.removeItem(RETURNING);
  if (current) {
    const body = JSON.stringify({ token: current.refresh, client_id: current.clientId });
    await fetch(`${home}/api/v4/oauth/revoke`, { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => void 0);
  }
  session.value = null;
  location.assign(`${home}/signout?${new URLSearchParams({ redirect_uri: redirectUri() })}`);
}

// src/theme.ts
var NAME = "tidegate.console.theme";
var stored = localStorage.getItem(NAME);
var theme = y3(stored === "light" || stored === "dark" ? stored : "auto");
x2(() => {
  localStorage.setItem(NAME, theme.value);
  document.documentElement.dataset.theme = theme.value;
});

// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var f4 = Symbol.for("pv");
var o4 = 0;
function a4(t4, e4, n3, u4, a5, i4) {
  e4 || (e4 = {});
  var c4, l4, p5 = e4;
  if ("ref" in p5 && "function" != typeof t4) for (l4 in p5 = {}, e4) "ref" == l4 ? c4 = e4[l4] : p5[l4] = e4[l4];
  var s4 = { type: t4, props: p5, key: n3, ref: c4, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: f4, __v: --o4, __i: -1, __u: 0 };
  return (a5 || i4) && (s4.__source = a5, s4.__self = i4), n.vnode && n.vnode(s4), s4;
}

// src/query/chart_box.tsx
var CHART = "./chart.js";
var load = () => import(CHART);
function ChartBox({ data }) {
  const host = T2(null);
  const chart = T2(null);
  const latest = T2(data);
  latest.current = data;
  const names = JSON.stringify([data.along, data.names, data.series.map(({ name }) => name)]);
  A2(() => {
    let gone = false;
    void load().then(({ drawChart }) => {
      if (!gone && host.current) chart.current = drawChart(host.current, latest.current);
    });
    return () => {
      gone = true;
      chart.current?.remove();
      chart.current = null;
    };
  }, [names, theme.value]);
  A2(() => chart.current?.update(data), [data]);
  return /* @__PURE__ */ a4("div", { class: "chart", ref: host, role: "img", "aria-label": `Chart of ${data.series.map(({ name }) => name).join(", ")} over ${data.x.length} ${data.time ? "times" : "rows"}` });
}

// src/api/errors.ts
var ApiError = class extends Error {
  constructor(status, code, message, details = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
};
function errorOfBody(status, body) {
  const members2 = body ?? {};
  const first = Array.isArray(members2.errors) ? members2.errors[0] : void 0;
  const text = members2.message ?? members2.error_description ?? first?.message ?? members2.error;
  const code = members2.errorCode ?? members2.error ?? "ERROR";
  const message = typeof text === "string" ? text : `The server answered with status ${status}.`;
  return new ApiError(status, String(code), message, members2);
}
var isAbort = (error) => error instanceof DOMException && error.name === "AbortError";
function sentence(error) {
  if (isAbort(error)) return "Cancelled.";
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const { detail, hint, sqlstate } = error.details;
  if (sqlstate === "42501") return `You do not have the right to do this: ${error.message}.`;
  const parts = [error.message, detail, hint].filter((part) => typeof part === "string" && part !== "");
  return parts.map((part) => /[.!?]$/.test(part) ? part : `${part}.`).join(" ");
}

// src/api/json.ts
var ExactNumber = class {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
};
var keepDigits = (_key, value, context) => typeof value === "number" && context?.source !== void 0 && String(value) !== context.source ? new ExactNumber(context.source) : value;
function parseExact(text) {
  return JSON.parse(text, keepDigits);
}
function showValue(value, indent = 0) {
  if (typeof value === "string") return value;
  return stringifyExact(value, indent);
}
function stringifyExact(value, indent = 0) {
  const numbers = [];
  const mark = "\0number:";
  const text = JSON.stringify(
    value,
    (_key, part) => part instanceof ExactNumber ? `${mark}${numbers.push(part.text) - 1}` : part,
    indent
  );
  if (numbers.length === 0) return text ?? "";
  return text.replace(/"\\u0000number:(\d+)"/g, (_all, index) => numbers[Number(index)] ?? "0");
}

// src/api/http.ts
var online = y3(true);
async function send(path, options) {
  const token = accessToken();
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== void 0) headers["Content-Type"] = "application/json";
  try {
    const answer = await fetch(home + path, {
      method: options.method ?? (options.body === void 0 ? "GET" : "POST"),
      headers,
      body: options.body === void 0 ? void 0 : JSON.stringify(options.body),
      signal: options.signal,
      // A redirect after a change leads to the changed object, which is not needed here.
      redirect: options.method === "PATCH" ? "manual" : "follow",
      cache: "no-store"
    });
    online.value = true;
    return answer;
  } catch (error) {
    if (isAbort(error)) throw error;
    online.value = false;
    throw new ApiError(0, "UNREACHABLE", "The server cannot be reached. Nothing that you typed is lost; try again.");
  }
}
async function request(path, options = {}) {
  let answer = await send(path, options);
  if (answer.status === 401 && actor.value) {
    actor.value = null;
    throw new ApiError(401, "INVALID_TOKEN", "Viewing as another user has ended. You are yourself again.");
  }
  if (answer.status === 401 && session.value) {
    if (await renew()) {
      answer = await send(path, options);
      if (answer.status === 401) sessionEnded.value = true;
    } else if (!sessionEnded.value) {
      throw new ApiError(0, "UNREACHABLE", "The server cannot renew your sign-in just now. Nothing that you typed is lost; try again.");
    }
  }
  if (answer.type === "opaqueredirect" || answer.ok) return answer;
  throw errorOfBody(answer.status, await readBody(answer));
}
async function readBody(answer) {
  const text = await answer.text();
  try {
    return parseExact(text);
  } catch {
    return { message: text.slice(0, 300) || `The server answered with status ${answer.status}.` };
  }
}
async function requestJson(path, options = {}) {
  return await readBody(await request(path, options));
}

// src/activity/records.ts
var loadActivity = (signal) => requestJson("/api/v4/activity", { signal });
function groupsOf(statements) {
  const groups = /* @__PURE__ */ new Map();
  for (const statement2 of statements) {
    const { route: route2, role, status, error, sqlstate, statement: text } = statement2;
    const name = JSON.stringify([route2, role, status, error, sqlstate, text]);
    const group = groups.get(name);
    const { milliseconds } = statement2;
    if (group) Object.assign(group, { count: group.count + 1, longest: Math.max(group.longest, milliseconds) });
    else groups.set(name, { last: statement2, kind: kindOf(statement2), count: 1, longest: milliseconds });
  }
  return [...groups.values()];
}
var PRIVILEGE = "42501";
var CLIENT_LEFT = 499;
function kindOf({ status, error, sqlstate }) {
  if (status === 401 || status === 403 || sqlstate === PRIVILEGE) return "refused";
  if (status === CLIENT_LEFT) return "slow";
  return status >= 400 || error !== null ? "failed" : "slow";
}
function interfaceOf(route2) {
  if (route2.startsWith("/api/v4/sql")) return "SQL";
  if (route2.startsWith("/api/graphql")) return "GraphQL";
  if (route2 === "/api/v4/call/dry") return "method, dry run";
  if (route2.startsWith("/api/v4/methods")) return "method definition";
  return route2 === "/api/v4/call" || route2 === "/api/v4/rpc" ? "method" : route2;
}
function since(at, now) {
  const seconds = Math.max(0, Math.round((Date.parse(now) - Date.parse(at)) / 1e3));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h ago` : new Date(at).toLocaleDateString("en-GB");
}
var duration = (milliseconds) => milliseconds < 1e3 ? `${milliseconds} ms` : `${(milliseconds / 1e3).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
var bytes = (count2) => count2 < 1024 ? `${count2} bytes` : count2 < 1024 ** 2 ? `${Math.round(count2 / 1024)} KiB` : `${(count2 / 1024 ** 2).toFixed(1)} MiB`;

// src/activity/feed.tsx
function FeedStatus({ feed }) {
  return /* @__PURE__ */ a4("section", { class: "card", "aria-labelledby": "feed-status", children: [
    /* @__PURE__ */ a4("h2", { id: "feed-status", children: [
      "Live changes ",
      feed && /* @__PURE__ */ a4("span", { class: `pill ${feed.live ? "live" : "lost"}`, children: feed.live ? "running" : "not running" })
    ] }),
    !feed && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "No subscription was opened yet. The feed starts with the first one, such as that of a ",
      /* @__PURE__ */ a4("a", { href: "#/tables", children: "table" }),
      " that is open in this console."
    ] }),
    feed && /* @__PURE__ */ a4("dl", { class: "facts", children: [
      /* @__PURE__ */ a4(Fact, { name: "Subscriptions", children: Number(feed.subscriptions).toLocaleString("en") }),
      /* @__PURE__ */ a4(Fact, { name: "Lag behind the database", children: `${Number(feed.lag_seconds).toLocaleString("en", { maximumFractionDigits: 1 })} s, ${bytes(Number(feed.lag_bytes))}` }),
      /* @__PURE__ */ a4(Fact, { name: "Events waiting to be sent", children: Number(feed.queued_events).toLocaleString("en") }),
      /* @__PURE__ */ a4(Fact, { name: "Gaps reported to subscribers", children: Number(feed.resyncs).toLocaleString("en") }),
      /* @__PURE__ */ a4(Fact, { name: "Slow subscribers", children: Number(feed.slow_consumers).toLocaleString("en") })
    ] })
  ] });
}
var Fact = ({ name, children }) => /* @__PURE__ */ a4("div", { children: [
  /* @__PURE__ */ a4("dt", { children: name }),
  /* @__PURE__ */ a4("dd", { children })
] });

// src/activity/poll.ts
var PERIOD = 2e3;
function usePoll() {
  const activity = useSignal(null);
  const problem = useSignal(null);
  const paused = useSignal(false);
  A2(() => {
    if (paused.value) return;
    const abort = new AbortController();
    let timer3;
    const read3 = async () => {
      if (!document.hidden) {
        try {
          activity.value = await loadActivity(abort.signal);
          problem.value = null;
        } catch (error) {
          if (isAbort(error)) return;
          problem.value = sentence(error);
          if (error instanceof ApiError && (error.status === 401 || error.status === 403)) paused.value = true;
        }
      }
      if (!abort.signal.aborted) timer3 = setTimeout(() => void read3(), PERIOD);
    };
    void read3();
    return () => {
      abort.abort();
      clearTimeout(timer3);
    };
  }, [paused.value]);
  return { activity: activity.value, problem: problem.value, paused };
}

// src/activity/statements.tsx
var WANTED = [["all", "All"], ["failed", "Failed"], ["refused", "Refused"], ["slow", "Slow"]];
function Statements({ activity: { statements, now } }) {
  const wanted = useSignal("all");
  const search = useSignal("");
  const groups = groupsOf(statements);
  const part = search.value.toLowerCase();
  const found = groups.filter((group) => (wanted.value === "all" || group.kind === wanted.value) && textOf(group).includes(part));
  const count2 = (of) => groups.reduce((all2, group) => all2 + (of === "all" || group.kind === of ? group.count : 0), 0);
  return /* @__PURE__ */ a4("section", { class: "card", "aria-labelledby": "statements", children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h2", { id: "statements", children: "Slow and failed statements" }),
      /* @__PURE__ */ a4("input", { type: "search", "aria-label": "Find a statement", placeholder: "Find", value: search.value, onInput: (event) => search.value = event.currentTarget.value }),
      /* @__PURE__ */ a4("div", { class: "tabs", role: "group", "aria-label": "Which statements", children: WANTED.map(([name, text]) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": wanted.value === name, onClick: () => wanted.value = name, children: [
        text,
        " ",
        count2(name)
      ] }, name)) })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "The last 50 that failed or took a second or longer. Values are not kept: each is a question mark." }),
    statements.length === 0 && /* @__PURE__ */ a4("p", { class: "none", children: "No statement was slow or failed since the server was started." }),
    statements.length > 0 && found.length === 0 && /* @__PURE__ */ a4("p", { class: "none", children: "No statement matches." }),
    found.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Statements, newest first", children: /* @__PURE__ */ a4("table", { class: "statements", children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Result" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Statement" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "User" }),
        /* @__PURE__ */ a4("th", { scope: "col", class: "number", children: "Took" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Last" })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: found.map((group) => /* @__PURE__ */ a4(Row, { group, now }, keyOf(group))) })
    ] }) })
  ] });
}
function Row({ group: { last, kind, count: count2, longest }, now }) {
  const code = last.status === CLIENT_LEFT ? "client disconnected" : [last.error, last.sqlstate].filter(Boolean).join(" ");
  return /* @__PURE__ */ a4("tr", { children: [
    /* @__PURE__ */ a4("td", { children: [
      /* @__PURE__ */ a4("span", { class: `pill ${kind}`, children: kind }),
      count2 > 1 && /* @__PURE__ */ a4("span", { class: "times", title: "How often", children: [
        " × ",
        count2
      ] }),
      code && /* @__PURE__ */ a4("small", { class: "code", children: code })
    ] }),
    /* @__PURE__ */ a4("th", { scope: "row", children: [
      last.statement === null ? /* @__PURE__ */ a4("span", { class: "hint", children: "The text is too long or cannot be parsed." }) : /* @__PURE__ */ a4("code", { class: "statement", children: last.statement }),
      /* @__PURE__ */ a4("small", { children: interfaceOf(last.route) })
    ] }),
    /* @__PURE__ */ a4("td", { children: last.role.slice(last.role.indexOf("/") + 1) }),
    /* @__PURE__ */ a4("td", { class: "number", children: [
      count2 > 1 && /* @__PURE__ */ a4("small", { children: "up to " }),
      duration(longest)
    ] }),
    /* @__PURE__ */ a4("td", { class: "when", children: /* @__PURE__ */ a4("time", { dateTime: last.at, title: new Date(last.at).toLocaleString("en-GB"), children: since(last.at, now) }) })
  ] });
}
var keyOf = ({ last: { route: route2, role, status, error, sqlstate, statement: statement2 } }) => JSON.stringify([route2, role, status, error, sqlstate, statement2]);
var textOf = ({ last: { statement: statement2, role, error, sqlstate, route: route2 } }) => [statement2, role, error, sqlstate, interfaceOf(route2)].join(" ").toLowerCase();

// src/activity/page.tsx
var PRESENT = 10;
function ActivityPage() {
  if (!claims.value?.superUser) {
    return /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: /* @__PURE__ */ a4("p", { class: "empty", children: "What happens in the database is shown to its owner." }) });
  }
  return /* @__PURE__ */ a4("div", { class: "area", children: /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: /* @__PURE__ */ a4("div", { class: "sheet", role: "region", tabIndex: 0, "aria-label": "Activity", children: /* @__PURE__ */ a4(Watched, {}) }) }) });
}
function Watched() {
  const { activity, problem, paused } = usePoll();
  const state = paused.value ? "paused" : problem ? "lost" : "live";
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: [
        "Activity ",
        /* @__PURE__ */ a4("span", { class: `pill ${state}`, children: state === "lost" ? "trying again" : state })
      ] }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => paused.value = !paused.value, children: paused.value ? "Resume" : "Pause" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "Requests to this database in the last five minutes, through the server that answers this page." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: [
      problem,
      activity && " The numbers below are the last that arrived."
    ] }),
    !activity && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the activity…" }),
    activity && /* @__PURE__ */ a4(Shown, { activity })
  ] });
}
function Shown({ activity }) {
  const chart = w2(() => chartOf(activity), [activity]);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Numbers, { activity }),
    /* @__PURE__ */ a4("div", { class: "activity-parts", children: [
      /* @__PURE__ */ a4("section", { class: "card rates", "aria-labelledby": "rates", children: [
        /* @__PURE__ */ a4("h2", { id: "rates", children: "Requests a second" }),
        /* @__PURE__ */ a4(ChartBox, { data: chart })
      ] }),
      /* @__PURE__ */ a4(FeedStatus, { feed: activity.feed })
    ] }),
    /* @__PURE__ */ a4(Statements, { activity })
  ] });
}
var sum = (counts2) => counts2.reduce((all2, one2) => all2 + one2, 0);
var rate = (counts2) => (sum(counts2.slice(-PRESENT)) / PRESENT).toLocaleString("en", { maximumFractionDigits: 1 });
var shown = (count2) => count2.toLocaleString("en");
function Numbers({ activity: { requests, errors, statements } }) {
  const [all2, failed] = [sum(requests), sum(errors)];
  const share = failed === 0 ? "" : ` · ${(failed / all2).toLocaleString("en", { style: "percent", maximumFractionDigits: 1 })} of all`;
  const slowest = Math.max(0, ...statements.map(({ milliseconds }) => milliseconds));
  return /* @__PURE__ */ a4("dl", { class: "tiles", children: [
    /* @__PURE__ */ a4("div", { children: [
      /* @__PURE__ */ a4("dt", { children: "Requests a second" }),
      /* @__PURE__ */ a4("dd", { children: rate(requests) }),
      /* @__PURE__ */ a4("dd", { class: "hint", children: [
        "in the last ",
        PRESENT,
        " seconds"
      ] })
    ] }),
    /* @__PURE__ */ a4("div", { class: sum(errors.slice(-PRESENT)) > 0 ? "bad" : "", children: [
      /* @__PURE__ */ a4("dt", { children: "Errors a second" }),
      /* @__PURE__ */ a4("dd", { children: rate(errors) }),
      /* @__PURE__ */ a4("dd", { class: "hint", children: [
        "in the last ",
        PRESENT,
        " seconds"
      ] })
    ] }),
    /* @__PURE__ */ a4("div", { children: [
      /* @__PURE__ */ a4("dt", { children: "Requests" }),
      /* @__PURE__ */ a4("dd", { children: shown(all2) }),
      /* @__PURE__ */ a4("dd", { class: "hint", children: [
        "at most ",
        shown(Math.max(...requests)),
        " in a second"
      ] })
    ] }),
    /* @__PURE__ */ a4("div", { class: failed > 0 ? "bad" : "", children: [
      /* @__PURE__ */ a4("dt", { children: "Errors" }),
      /* @__PURE__ */ a4("dd", { children: shown(failed) }),
      /* @__PURE__ */ a4("dd", { class: "hint", children: [
        "in five minutes",
        share
      ] })
    ] }),
    /* @__PURE__ */ a4("div", { children: [
      /* @__PURE__ */ a4("dt", { children: "Slowest statement" }),
      /* @__PURE__ */ a4("dd", { children: slowest >= 1e3 ? duration(slowest) : "under 1 s" }),
      /* @__PURE__ */ a4("dd", { class: "hint", children: "of those listed below" })
    ] })
  ] });
}
function chartOf({ now, requests, errors }) {
  const last = Math.floor(Date.parse(now) / 1e3);
  return {
    x: requests.map((_count, index) => last - requests.length + 1 + index),
    along: "time",
    time: true,
    present: true,
    series: [
      { name: "requests", values: requests },
      { name: "errors", values: errors, stroke: "--bad" }
    ]
  };
}

// src/api/sql.ts
function statement(q2, params = {}) {
  const names = Object.keys(params);
  if (names.length === 0) return { q: q2 };
  return { q: q2, params, type_hints: Object.fromEntries(names.map((name) => [name, "text"])) };
}
var sql = (body, signal) => requestJson("/api/v4/sql", { body, signal });
var ident = (name) => `"${name.replaceAll('"', '""')}"`;

// src/catalog/tables.ts
var tables = y3(null);
var HIDDEN_SCHEMAS = ["information_schema", "tidegate", "tidegate_private", "tidegate_outbox", "tidegate_catalog"].map((name) => `'${name}'`).join(", ");
var COUNTED = 4e6;
var MOST_COUNTED = 200;
var QUERY = `
select n.nspname as schema, c.relname as name, quote_ident(n.nspname) || '.' || quote_ident(c.relname) as written, c.relkind::text as kind,
       case when row_security_active(c.oid) then -1 when c.relkind = 'p' then (
         select coalesce(sum(greatest(p.reltuples, 0)), 0)
         from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid
       ) else c.reltuples end::float8 as estimate,
       c.relkind = 'r' and (c.reltuples <= 0 or row_security_active(c.oid)) and has_any_column_privilege(c.oid, 'SELECT')
         and pg_relation_size(c.oid) < ${COUNTED} as counted,
       obj_description(c.oid, 'pg_class') as comment
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname !~ '^pg_' and n.nspname not in (${HIDDEN_SCHEMAS})
  and has_schema_privilege(n.oid, 'USAGE')
  and has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE')
  and not exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by n.nspname, c.relname`;
var read = async (signal) => (await sql(statement(QUERY), signal)).data;
async function refreshTables() {
  const shown2 = tables.peek();
  const before2 = new Map(shown2?.map((entry) => [`${entry.kind} ${entry.written}`, entry]));
  const entries = await read();
  if (tables.peek() !== shown2) return;
  if (entries.length === before2.size && entries.every(({ kind, written }) => before2.has(`${kind} ${written}`))) return;
  tables.value = entries.map((entry) => before2.get(`${entry.kind} ${entry.written}`) ?? entry);
}
async function loadTables(signal) {
  const entries = await read(signal);
  tables.value = entries;
  await count(entries.filter(({ counted }) => counted).slice(0, MOST_COUNTED), signal);
}
var counts = y3(/* @__PURE__ */ new Map());
function rowsOf(entry) {
  const counted = counts.value.get(entry);
  return counted ?? (entry.estimate > 0 ? entry.estimate : null);
}
async function count(entries, signal) {
  if (entries.length === 0) return;
  const numbers = entries.map(({ schema, name }) => `(select count(*) from ${ident(schema)}.${ident(name)})`);
  try {
    const { data } = await sql(statement(`select array[${numbers.join(", ")}]::float8[] as counts`), signal);
    counts.value = new Map(data[0].counts.map((number2, at) => [entries[at], Number(number2)]));
  } catch {
    counts.value = /* @__PURE__ */ new Map();
  }
}
var KINDS = {
  r: "table",
  p: "partitioned table",
  v: "view",
  m: "materialized view",
  f: "foreign table"
};

// src/parts/mark.tsx
var Mark = () => /* @__PURE__ */ a4("svg", { class: "mark", viewBox: "0 0 32 32", width: "24", height: "24", "aria-hidden": "true", focusable: "false", children: [
  /* @__PURE__ */ a4("rect", { x: "1", y: "1", width: "30", height: "30", rx: "8" }),
  /* @__PURE__ */ a4("path", { d: "M6 12c3.3-3 6.7-3 10 0s6.7 3 10 0M6 17.5c3.3-3 6.7-3 10 0s6.7 3 10 0M6 23c3.3-3 6.7-3 10 0s6.7 3 10 0" })
] });

// src/query/store.ts
var LENGTH = 100;
var LONGEST = 2e4;
var owner = O(() => session.value?.claims.sub ?? null);
var draftKey = (mode2) => `tidegate.console.draft.${mode2}:${owner.value}`;
var historyKey = () => `tidegate.console.history:${owner.value}`;
var draft = (mode2) => (owner.value && localStorage.getItem(draftKey(mode2))) ?? "";
function saveDraft(mode2, text) {
  if (owner.value && text.length <= LONGEST) localStorage.setItem(draftKey(mode2), text);
}
function readPast() {
  if (!owner.value) return [];
  try {
    return JSON.parse(localStorage.getItem(historyKey()) ?? "[]");
  } catch {
    return [];
  }
}
var past = y3([]);
x2(() => {
  past.value = readPast();
});
function remember(mode2, text) {
  if (!owner.value || text.trim() === "" || text.length > LONGEST) return;
  past.value = [{ mode: mode2, text, at: Date.now() }, ...past.value.filter((entry) => entry.text !== text)].slice(0, LENGTH);
  localStorage.setItem(historyKey(), JSON.stringify(past.value));
}
function forget() {
  past.value = [];
  localStorage.removeItem(historyKey());
  for (const mode2 of ["sql", "graphql", "methods"]) localStorage.removeItem(draftKey(mode2));
}

// src/tables/condition.ts
var OPERATORS = [
  ["=", "equals"],
  ["<>", "is not"],
  ["<", "less than"],
  ["<=", "at most"],
  [">", "greater than"],
  [">=", "at least"],
  ["contains", "contains"],
  ["starts", "starts with"],
  ["null", "is empty (NULL)"],
  ["not null", "is not empty"]
];
function isFilter(value) {
  if (typeof value !== "object" || value === null) return false;
  const { column: column3, operator, value: text } = value;
  return typeof column3 === "string" && typeof text === "string" && OPERATORS.some(([known]) => known === operator);
}
function operatorSql(operator) {
  const known = OPERATORS.find(([name]) => name === operator);
  if (!known) throw new Error(`The filter has an unknown operator: ${operator}.`);
  return known[0];
}
var needsValue = (operator) => operator !== "null" && operator !== "not null";
var escapeLike = (text) => text.replace(/[\\%_]/g, "\\$&");
var castTo = (parameter, column3) => `cast(:${parameter} as ${column3.cast})`;
function condition(filter, column3, name, params) {
  const target = ident(column3.name);
  switch (filter.operator) {
    case "null":
      return `${target} is null`;
    case "not null":
      return `${target} is not null`;
    case "contains":
      params[name] = `%${escapeLike(filter.value)}%`;
      return `${target}::text ilike :${name}`;
    case "starts":
      params[name] = `${escapeLike(filter.value)}%`;
      return `${target}::text ilike :${name}`;
    default:
      params[name] = filter.value;
      return `${target} ${operatorSql(filter.operator)} ${castTo(name, column3)}`;
  }
}
function conditions(table2, filters, params) {
  return filters.flatMap((filter, index) => {
    const column3 = table2.columns.find(({ name }) => name === filter.column);
    return column3 ? [condition(filter, column3, `f${index}`, params)] : [];
  });
}
var where = (parts) => parts.length > 0 ? ` where ${parts.join(" and ")}` : "";
function orderTerms(table2, order) {
  const chosen2 = order.filter(({ column: column3 }) => table2.columns.some(({ name }) => name === column3));
  const rest = table2.key.filter(({ name }) => !chosen2.some(({ column: column3 }) => column3 === name));
  return [...chosen2, ...rest.map(({ name }) => ({ column: name, descending: false }))];
}
function orderBy(terms, backwards = false) {
  if (terms.length === 0) return "";
  const parts = terms.map(({ column: column3, descending }) => `${ident(column3)} ${descending !== backwards ? "desc nulls first" : "asc nulls last"}`);
  return ` order by ${parts.join(", ")}`;
}

// src/route.ts
var route = y3(read2());
function read2() {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [area, first, second] = path.split("/").map(decoded);
  if (area === "query" || area === "activity") return { area };
  if (area === "people") return { area, part: first ?? "users" };
  return { area: "tables", schema: first, table: second, filters: filtersOf(search) };
}
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
function filtersOf(search) {
  try {
    const filters = JSON.parse(new URLSearchParams(search).get("filters") ?? "[]");
    return Array.isArray(filters) && filters.every(isFilter) ? filters : [];
  } catch {
    return [];
  }
}
var OF_OWNERS = ["people", "activity"];
function hrefOf(to) {
  if (to.area === "query" || to.area === "activity") return `#/${to.area}`;
  if (to.area === "people") return `#/people/${encodeURIComponent(to.part)}`;
  if (!to.schema || !to.table) return "#/tables";
  const path = `#/tables/${encodeURIComponent(to.schema)}/${encodeURIComponent(to.table)}`;
  return to.filters?.length ? `${path}?${new URLSearchParams({ filters: JSON.stringify(to.filters) })}` : path;
}
var goTo = (to) => {
  location.hash = hrefOf(to);
};
addEventListener("hashchange", () => route.value = read2());

// src/parts/notice.tsx
var notices = y3([]);
var counter = 0;
var here = () => `${route.value.area} ${claims.value?.sub}`;
function say(kind, text, seconds, action) {
  const id = counter += 1;
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, kind, text, action, place: here() }].slice(-2);
  if (seconds > 0) setTimeout(() => dismiss(id), seconds * 1e3);
}
var dismiss = (id) => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};
var sayDone = (text) => say("good", text, 5);
function sayError(error, action) {
  if (!isAbort(error)) say("bad", sentence(error), 0, action);
}
var withdrawActions = () => {
  notices.value = notices.value.filter(({ action }) => !action);
};
function Notices() {
  return /* @__PURE__ */ a4("div", { class: "notices", role: "status", "aria-live": "polite", children: notices.value.filter(({ kind, place }) => kind === "good" || place === here()).map(({ id, kind, text, action }) => /* @__PURE__ */ a4("div", { class: `notice ${kind}`, children: [
    /* @__PURE__ */ a4("span", { children: text }),
    action && /* @__PURE__ */ a4(
      "button",
      {
        type: "button",
        onClick: () => {
          dismiss(id);
          action.run();
        },
        children: action.label
      }
    ),
    /* @__PURE__ */ a4("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onClick: () => dismiss(id), children: "✕" })
  ] }, id)) });
}

// src/people/records.ts
var USERS = "/api/v4/users";
var CLIENTS = "/api/v4/clients";
var one = (path, name) => `${path}/${encodeURIComponent(name)}`;
var groupsOf2 = (user) => user.user_group === null ? [] : Array.isArray(user.user_group) ? user.user_group : [user.user_group];
var PAGE = 100;
var loadUsers = async (after) => {
  const users2 = await requestJson(`${USERS}?limit=${PAGE + 1}&after=${encodeURIComponent(after)}`);
  return { users: users2.slice(0, PAGE), more: users2.length > PAGE };
};
var loadRoles = () => requestJson(`${USERS}?kind=role`);
var loadFirstMembers = () => requestJson(`${USERS}?kind=member&limit=${PAGE}`);
var createUser = (body) => request(USERS, { body });
var changeUser = (name, body) => request(one(USERS, name), { method: "PATCH", body });
var dropUser = (name, reassign) => request(`${one(USERS, name)}${reassign ? "?reassign=true" : ""}`, { method: "DELETE" });
var usersOfGroup = async (group, limit) => (await requestJson(`${USERS}?${new URLSearchParams({ group, limit: String(limit) })}`)).map(({ name }) => name);
async function addToGroup(name, group) {
  const groups = groupsOf2(await requestJson(one(USERS, name)));
  if (!groups.includes(group)) await changeUser(name, { user_group: [...groups, group] });
}
var loadClients = () => requestJson(CLIENTS);
var createClient = (body) => requestJson(CLIENTS, { body });
var changeClient = (id, body) => request(one(CLIENTS, id), { method: "PATCH", body });
var rotateSecret = (id) => requestJson(one(CLIENTS, id), { method: "PATCH", body: { rotate_secret: true } });
var dropClient = (id) => request(one(CLIENTS, id), { method: "DELETE" });
var SESSIONS = "/api/v4/sessions";
var loadSessions = () => requestJson(SESSIONS);
var endSession = (id) => request(one(SESSIONS, id), { method: "DELETE" });
var ISSUERS = "/api/v4/issuers";
var loadIssuers = async () => [await requestJson(ISSUERS)].flat();
var createIssuer = (body) => request(ISSUERS, { body });
var changeIssuer = (name, body) => request(one(ISSUERS, name), { method: "PATCH", body });
var dropIssuer = (name) => request(one(ISSUERS, name), { method: "DELETE" });
async function loadAudit(since2, pages = 5) {
  const all2 = [];
  let from = since2.toISOString();
  for (let page = 0; page < pages; page += 1) {
    const { events, next } = await requestJson(`/api/v4/audit?${new URLSearchParams({ since: from, limit: "1000" })}`);
    all2.push(...events);
    if (events.length < 1e3 || next === null) break;
    from = String(next);
  }
  return all2.reverse();
}

// src/view_as.tsx
var users = y3([]);
var members = y3([]);
var offered = y3(false);
async function prepare() {
  const { paths } = await requestJson("/api/v4/openapi.json");
  offered.value = Object.keys(paths).some((path) => /^\/api\/v4\/users\/\{\w+\}\/token$/.test(path));
  await loadUsersToView();
}
async function loadUsersToView() {
  if (!offered.value) return;
  const [roles, first] = await Promise.all([loadRoles(), loadFirstMembers()]);
  users.value = roles.map(({ name }) => name);
  members.value = first.map(({ name }) => name);
}
async function become(name) {
  actor.value = null;
  if (name === "") return;
  try {
    const { access_token: access } = await requestJson(`/api/v4/users/${encodeURIComponent(name)}/token`, { method: "POST" });
    actor.value = { name, access, claims: claimsOf(access) };
    if (isMember.value) goTo({ area: "query" });
    else if (OF_OWNERS.includes(route.value.area)) goTo({ area: "tables" });
  } catch (error) {
    sayError(error);
  }
}
function ViewAs() {
  const own = session.value?.claims;
  A2(() => {
    if (own?.superUser) prepare().catch(() => offered.value = false);
  }, [own?.sub]);
  if (!own?.superUser || !offered.value) return null;
  const others = users.value.filter((name) => name !== userName(own));
  const acting = actor.value?.name ?? "";
  const shown2 = acting === "" || others.includes(acting) || members.value.includes(acting) ? members.value : [acting, ...members.value];
  return /* @__PURE__ */ a4("label", { class: "view-as", children: [
    /* @__PURE__ */ a4("span", { children: "View as" }),
    /* @__PURE__ */ a4("select", { "aria-label": "View as", value: acting, onChange: (event) => void become(event.currentTarget.value), children: [
      /* @__PURE__ */ a4("option", { value: "", children: [
        userName(own),
        " (owner)"
      ] }),
      others.map((name) => /* @__PURE__ */ a4("option", { value: name, children: name }, name)),
      shown2.length > 0 && /* @__PURE__ */ a4("optgroup", { label: "Members", children: shown2.map((name) => /* @__PURE__ */ a4("option", { value: name, children: name }, name)) })
    ] })
  ] });
}
function ActingBar() {
  if (!actor.value) return null;
  return /* @__PURE__ */ a4("p", { class: "acting", role: "status", children: [
    "You see and do everything as ",
    actor.value.name,
    ". It is recorded in the audit log and ends after 15 minutes.",
    /* @__PURE__ */ a4("button", { type: "button", onClick: () => void become(""), children: "Be yourself again" })
  ] });
}

// src/header.tsx
var AREAS = [
  ["Tables", { area: "tables" }],
  ["Query", { area: "query" }],
  ["People", { area: "people", part: "users" }],
  ["Activity", { area: "activity" }]
];
function leave() {
  forget();
  void signOut();
}
function Header() {
  const own = session.value?.claims;
  return /* @__PURE__ */ a4("header", { class: "top", children: [
    /* @__PURE__ */ a4("a", { class: "brand", href: "#/tables", "aria-label": "Tidegate", children: [
      /* @__PURE__ */ a4(Mark, {}),
      /* @__PURE__ */ a4("span", { children: "Tidegate" })
    ] }),
    /* @__PURE__ */ a4("span", { class: "database", title: "Database", children: own?.database }),
    /* @__PURE__ */ a4("nav", { "aria-label": "Areas", class: "areas", children: AREAS.filter(([, { area }]) => !OF_OWNERS.includes(area) || claims.value?.superUser).map(([text, to]) => /* @__PURE__ */ a4("a", { href: hrefOf(to), "aria-current": route.value.area === to.area ? "page" : void 0, children: text }, text)) }),
    /* @__PURE__ */ a4("span", { class: "spread" }),
    /* @__PURE__ */ a4(ViewAs, {}),
    own && !(own.superUser && offered.value) && /* @__PURE__ */ a4("span", { class: "who", title: "User", children: userName(own) }),
    /* @__PURE__ */ a4("a", { class: "docs", href: `${home}/docs/`, target: "_blank", rel: "noopener", children: "Docs" }),
    /* @__PURE__ */ a4("label", { class: "theme", children: [
      /* @__PURE__ */ a4("span", { children: "Colours" }),
      /* @__PURE__ */ a4("select", { "aria-label": "Colours", value: theme.value, onChange: (event) => theme.value = event.currentTarget.value, children: [
        /* @__PURE__ */ a4("option", { value: "auto", children: "system" }),
        /* @__PURE__ */ a4("option", { value: "light", children: "light" }),
        /* @__PURE__ */ a4("option", { value: "dark", children: "dark" })
      ] })
    ] }),
    /* @__PURE__ */ a4("button", { type: "button", class: "quiet", onClick: leave, children: "Sign out" })
  ] });
}

// src/parts/dialog.tsx
var startOf = (dialog) => dialog.querySelector("input, textarea:not([readonly]), select") ?? dialog.querySelector("ul button, footer button:not(:disabled)");
function Dialog({ title, onClose, children, wide }) {
  const dialog = T2(null);
  const id = P2();
  A2(() => {
    const element = dialog.current;
    const before2 = document.activeElement;
    element?.showModal();
    if (element) startOf(element)?.focus();
    return () => {
      element?.close();
      before2?.focus?.();
    };
  }, []);
  return /* @__PURE__ */ a4(
    "dialog",
    {
      ref: dialog,
      class: wide ? "wide" : "",
      "aria-labelledby": id,
      onCancel: (event) => {
        event.preventDefault();
        onClose();
      },
      children: [
        /* @__PURE__ */ a4("header", { children: [
          /* @__PURE__ */ a4("h2", { id, children: title }),
          /* @__PURE__ */ a4("button", { type: "button", class: "quiet", "aria-label": "Close", onClick: onClose, children: "✕" })
        ] }),
        children
      ]
    }
  );
}

// src/people/load.ts
function useLoaded(read3, again = []) {
  const value = useSignal(null);
  const problem = useSignal(null);
  const reload = async () => {
    try {
      value.value = await read3();
      problem.value = null;
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  A2(() => void reload(), again);
  return { value: value.value, problem: problem.value, reload };
}

// src/people/audit.tsx
var PERIODS = [[1, "last hour"], [24, "last day"], [24 * 7, "last week"], [24 * 30, "last month"]];
var MOST_SHOWN = 500;
function Audit() {
  const hours = useSignal(24);
  const search = useSignal("");
  const { value: events, problem } = useLoaded(() => loadAudit(new Date(Date.now() - hours.value * 36e5)), [hours.value]);
  const wanted = search.value.toLowerCase();
  const found = (events ?? []).filter((event) => Object.values(event).join(" ").toLowerCase().includes(wanted));
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Audit log" }),
      /* @__PURE__ */ a4("input", { type: "search", "aria-label": "Find in the log", placeholder: "Find", value: search.value, onInput: (event) => search.value = event.currentTarget.value }),
      /* @__PURE__ */ a4("select", { "aria-label": "Period", value: hours.value, onChange: (event) => hours.value = Number(event.currentTarget.value), children: PERIODS.map(([value, text]) => /* @__PURE__ */ a4("option", { value, children: text }, value)) })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "What happened to accounts, sessions, clients and rights. What the operator did on the server has no address." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !events && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the log…" }),
    events && found.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "Nothing happened in this time." }),
    found.length > MOST_SHOWN && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "The newest ",
      MOST_SHOWN,
      " of ",
      found.length.toLocaleString("en"),
      " events are shown."
    ] }),
    found.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "Events, newest first", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "When" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Event" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Detail" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "User" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Client" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "By" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "From" })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: found.slice(0, MOST_SHOWN).map((event) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("td", { class: "when", children: new Date(event.at).toLocaleString("en-GB") }),
        /* @__PURE__ */ a4("th", { scope: "row", children: event.event.replaceAll("_", " ") }),
        /* @__PURE__ */ a4("td", { children: event.detail ?? "" }),
        /* @__PURE__ */ a4("td", { children: event.user ?? "" }),
        /* @__PURE__ */ a4("td", { children: event.client_id ?? "" }),
        /* @__PURE__ */ a4("td", { children: event.actor ?? "" }),
        /* @__PURE__ */ a4("td", { children: event.address ?? "" })
      ] }, event.id)) })
    ] }) })
  ] });
}

// src/parts/confirm.tsx
function Confirm({ title, text, action, onConfirm, onClose }) {
  return /* @__PURE__ */ a4(Dialog, { title, onClose, children: [
    /* @__PURE__ */ a4("p", { children: text }),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: "Cancel" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "danger", onClick: onConfirm, children: action })
    ] })
  ] });
}

// src/parts/copy.ts
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    sayDone("Copied.");
  } catch {
    sayError(new Error("The browser does not let this page copy. Select the text and copy it."));
  }
}

// src/people/form.tsx
function FormDialog({ title, action, onSave, onClose, children }) {
  const problem = useSignal(null);
  const busy = useSignal(false);
  const submit = async (event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    busy.value = true;
    try {
      await onSave(fields);
      onClose();
    } catch (error) {
      problem.value = sentence(error);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ a4(Dialog, { title, onClose, children: /* @__PURE__ */ a4("form", { class: "form", onSubmit: submit, children: [
    problem.value && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem.value }),
    children,
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: "Cancel" }),
      /* @__PURE__ */ a4("button", { type: "submit", class: "primary", disabled: busy.value, children: action })
    ] })
  ] }) });
}
var textOf2 = (fields, name) => String(fields.get(name) ?? "").trim();
var orNull = (text) => text === "" ? null : text;
var listOf = (text) => text.split(/[,\n]/).map((word) => word.trim()).filter(Boolean);

// src/people/clients.tsx
function Clients() {
  const { value: clients, problem, reload } = useLoaded(loadClients);
  const editing = useSignal(null);
  const dropping = useSignal(null);
  const secret = useSignal(null);
  const drop = async ({ id }) => {
    dropping.value = null;
    try {
      await dropClient(id);
      sayDone(`The client ${id} was deleted.`);
      await reload();
    } catch (error) {
      sayError(error);
    }
  };
  const rotate = async ({ id }) => {
    try {
      const made = await rotateSecret(id);
      if (made.secret) secret.value = { id, secret: made.secret };
    } catch (error) {
      sayError(error);
    }
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Clients" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => editing.value = "new", children: "New client" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "A client is an application that signs users in by OAuth." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !clients && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the clients…" }),
    clients && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "List of clients", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Id" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Kind" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Returns to" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: /* @__PURE__ */ a4("span", { class: "sr", children: "Actions" }) })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: clients.map((client) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: client.id }),
        /* @__PURE__ */ a4("td", { children: client.name }),
        /* @__PURE__ */ a4("td", { children: client.public ? "public" : "confidential" }),
        /* @__PURE__ */ a4("td", { children: client.redirect_uri.map((uri) => /* @__PURE__ */ a4("code", { class: "line", children: uri }, uri)) }),
        /* @__PURE__ */ a4("td", { class: "actions", children: [
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Edit ${client.id}`, onClick: () => editing.value = client, children: "Edit" }),
          !client.public && /* @__PURE__ */ a4("button", { type: "button", "aria-label": `New secret for ${client.id}`, onClick: () => void rotate(client), children: "New secret" }),
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Delete ${client.id}`, onClick: () => dropping.value = client, children: "Delete" })
        ] })
      ] }, client.id)) })
    ] }) }),
    editing.value && /* @__PURE__ */ a4(ClientForm, { client: editing.value === "new" ? null : editing.value, onDone: reload, onSecret: (made) => secret.value = made, onClose: () => editing.value = null }),
    dropping.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: `Delete ${dropping.value.id}?`,
        action: "Delete",
        text: "The application can sign nobody in any more, and its sessions end.",
        onConfirm: () => void drop(dropping.value),
        onClose: () => dropping.value = null
      }
    ),
    secret.value && !editing.value && /* @__PURE__ */ a4(SecretDialog, { made: secret.value, onClose: () => secret.value = null })
  ] });
}
function SecretDialog({ made, onClose }) {
  return /* @__PURE__ */ a4(Dialog, { title: `Secret of ${made.id}`, onClose, children: [
    /* @__PURE__ */ a4("p", { children: "Copy the secret now: it is shown this once and stored only as a hash. A secret from before works for another 24 hours." }),
    /* @__PURE__ */ a4("pre", { class: "secret", tabIndex: 0, "aria-label": "Secret", children: made.secret }),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => void copyText(made.secret), children: "Copy" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: onClose, children: "I have it" })
    ] })
  ] });
}
function ClientForm({ client, onDone, onSecret, onClose }) {
  const save = async (fields) => {
    const members2 = membersOf(fields);
    if (client) {
      await changeClient(client.id, members2);
      sayDone(`The client ${client.id} was changed.`);
    } else {
      const id = orNull(textOf2(fields, "id"));
      const made = await createClient(id === null ? members2 : { id, ...members2 });
      if (made.secret) onSecret({ id: made.id, secret: made.secret });
      sayDone(`The client ${made.id} was created.`);
    }
    await onDone();
  };
  const check = (name, text, otherwise = false) => /* @__PURE__ */ a4("label", { class: "check", children: [
    /* @__PURE__ */ a4("input", { name, type: "checkbox", defaultChecked: client ? Boolean(client[name]) : otherwise }),
    " ",
    text
  ] });
  return /* @__PURE__ */ a4(FormDialog, { title: client ? `Client ${client.id}` : "New client", action: client ? "Save" : "Create client", onSave: save, onClose, children: [
    !client && /* @__PURE__ */ a4("label", { children: [
      "Id",
      /* @__PURE__ */ a4("input", { name: "id", maxLength: 64, pattern: "[A-Za-z0-9_.\\-]*", placeholder: "made when left empty", autocomplete: "off", spellcheck: false })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      "Name",
      /* @__PURE__ */ a4("input", { name: "name", required: true, autocomplete: "off", defaultValue: client?.name ?? "" })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      "Addresses that it returns to, one a line",
      /* @__PURE__ */ a4("textarea", { name: "redirect_uri", required: true, rows: 3, spellcheck: false, children: client?.redirect_uri.join("\n") ?? "" })
    ] }),
    check("public", "Public: it runs in a browser or on a phone and cannot keep a secret"),
    check("confirm", "Ask people to consent", true),
    check("two_factor", "Ask for a second factor"),
    check("allow_signup", "People may sign up through it")
  ] });
}
var membersOf = (fields) => ({
  name: textOf2(fields, "name"),
  redirect_uri: listOf(textOf2(fields, "redirect_uri")),
  public: fields.get("public") !== null,
  confirm: fields.get("confirm") !== null,
  two_factor: fields.get("two_factor") !== null,
  allow_signup: fields.get("allow_signup") !== null
});

// src/people/rights_data.ts
var cellKey = (table2, role) => `${table2}\0${role}`;
var MOST_HOLDERS = 60;
var HOLDERS = `
select rolname as role from pg_roles
where starts_with(rolname::text, current_database()::text || cast(:under as text))
  and strpos(rolname::text, '/$') = 0 order by 1 limit ${MOST_HOLDERS}`;
async function loadHolders(under) {
  const { data } = await sql(statement(HOLDERS, { under }));
  return data.map(({ role }) => holderOf(String(role)));
}
var WORDS = `
select c.relname as "table", r.rolname as role,
  case
    when not has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE') and not has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE') then 'none'
    when not has_table_privilege(r.oid, c.oid, 'SELECT') then 'other'
    when has_table_privilege(r.oid, c.oid, 'INSERT') and has_table_privilege(r.oid, c.oid, 'UPDATE') and has_table_privilege(r.oid, c.oid, 'DELETE') then 'write'
    when has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE') or has_table_privilege(r.oid, c.oid, 'DELETE') then 'other'
    else 'read'
  end as word
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_roles r on r.rolname = any (cast(:roles as text[]))
where n.nspname = :schema and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
order by 1, 2`;
async function loadRights(schema) {
  const holders = await loadHolders("/");
  const roles = holders.map(({ role }) => role);
  const list = `{${roles.map((role) => `"${role.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
  const { data } = await sql(statement(WORDS, { roles: list, schema }));
  const words = new Map(data.map((row) => [cellKey(String(row.table), String(row.role)), row.word]));
  return { tables: [...new Set(data.map(({ table: table2 }) => String(table2)))], holders, words };
}
function holderOf(role) {
  const rest = role.slice(role.indexOf("/") + 1);
  const group = rest.startsWith("group/");
  return { role, group, name: group ? rest.slice("group/".length) : rest };
}
var FIRST_USERS = 12;
async function loadGroups() {
  const groups = await loadHolders("/group/");
  return Promise.all(groups.map(async ({ name, role }) => ({ name, role, users: await usersOfGroup(name, FIRST_USERS + 1) })));
}
var SEQUENCES = `
select quote_ident(n.nspname) || '.' || quote_ident(s.relname) as name
from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S' join pg_namespace n on n.oid = s.relnamespace
where d.refobjid = to_regclass(:table) and d.refobjsubid > 0 and d.deptype in ('a', 'i')
  and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass`;
async function setRight(schema, table2, holder, word) {
  if (!holder.group) {
    const path = `/api/v4/schemas/${encodeURIComponent(schema)}/tables/${encodeURIComponent(table2)}/privileges`;
    await request(path, { method: "PATCH", body: { subuser: holder.name, privilege: word } });
    return;
  }
  const [on, role] = [`${ident(schema)}.${ident(table2)}`, ident(holder.role)];
  const sequences = (await sql(statement(SEQUENCES, { table: on }))).data.map(({ name }) => String(name));
  const statements = [`revoke all on ${on} from ${role}`, ...sequences.map((name) => `revoke all on sequence ${name} from ${role}`)];
  if (word === "read") statements.push(`grant select on ${on} to ${role}`);
  if (word === "write") {
    statements.push(`grant select, insert, update, delete on ${on} to ${role}`, ...sequences.map((name) => `grant usage, select on sequence ${name} to ${role}`));
  }
  if (word !== "none") statements.push(`grant usage on schema ${ident(schema)} to ${role}`);
  await request("/api/v4/sql", { body: statements.map((q2) => ({ q: q2 })) });
}
var COLUMN_RIGHTS = ["SELECT", "INSERT", "UPDATE"];
var COLUMNS = `
select a.attname as name,
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'SELECT') as "SELECT",
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'INSERT') as "INSERT",
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'UPDATE') as "UPDATE"
from pg_attribute a, pg_roles r
where a.attrelid = to_regclass(:name) and a.attnum > 0 and not a.attisdropped and r.rolname = :role order by a.attnum`;
async function loadColumnRights(schema, table2, holder) {
  const name = `${ident(schema)}.${ident(table2)}`;
  const { data } = await sql(statement(COLUMNS, { name, role: holder.role }));
  return data;
}
async function setColumnRight(schema, table2, holder, change) {
  const on = `(${ident(change.column)}) on ${ident(schema)}.${ident(table2)}`;
  const q2 = change.granted ? `grant ${change.right} ${on} to ${ident(holder.role)}` : `revoke ${change.right} ${on} from ${ident(holder.role)}`;
  await sql({ q: q2 });
}

// src/people/groups.tsx
function Groups() {
  const { value: groups, problem, reload } = useLoaded(loadGroups);
  const adding = useSignal(null);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Groups" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => adding.value = "new", children: "New group" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      "What is granted to a group, its users may do. Grant it under ",
      /* @__PURE__ */ a4("a", { href: hrefOf({ area: "people", part: "rights" }), children: "Rights" }),
      "; take a user out of it under ",
      /* @__PURE__ */ a4("a", { href: hrefOf({ area: "people", part: "users" }), children: "Users" }),
      ", Edit."
    ] }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !groups && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the groups…" }),
    groups?.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "No group yet." }),
    groups && groups.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "List of groups", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Group" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Role in PostgreSQL" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Users" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: /* @__PURE__ */ a4("span", { class: "sr", children: "Actions" }) })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: groups.map((group) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: group.name }),
        /* @__PURE__ */ a4("td", { children: /* @__PURE__ */ a4("code", { children: group.role }) }),
        /* @__PURE__ */ a4("td", { children: [
          group.users.slice(0, FIRST_USERS).join(", "),
          group.users.length > FIRST_USERS && " and others"
        ] }),
        /* @__PURE__ */ a4("td", { class: "actions", children: /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Add users to ${group.name}`, onClick: () => adding.value = group, children: "Add users" }) })
      ] }, group.name)) })
    ] }) }),
    adding.value && /* @__PURE__ */ a4(AddForm, { group: adding.value === "new" ? null : adding.value.name, onDone: reload, onClose: () => adding.value = null })
  ] });
}
function AddForm({ group, onDone, onClose }) {
  const save = async (fields) => {
    const name = group ?? textOf2(fields, "group");
    const users2 = listOf(textOf2(fields, "users"));
    try {
      for (const user of users2) await addToGroup(user, name);
    } finally {
      await onDone();
    }
    sayDone(`${users2.join(", ")} ${users2.length === 1 ? "is" : "are"} in the group ${name} now.`);
  };
  return /* @__PURE__ */ a4(FormDialog, { title: group ? `Add users to ${group}` : "New group", action: group ? "Add" : "Create group", onSave: save, onClose, children: [
    !group && /* @__PURE__ */ a4("label", { children: [
      "Group",
      /* @__PURE__ */ a4("input", { name: "group", required: true, autocomplete: "off", spellcheck: false })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      group ? "Users" : "Its first users",
      ", separated by commas",
      /* @__PURE__ */ a4("input", { name: "users", required: true, autocomplete: "off", spellcheck: false })
    ] })
  ] });
}

// src/people/issuers.tsx
function Issuers() {
  const { value: issuers, problem, reload } = useLoaded(loadIssuers);
  const editing = useSignal(null);
  const dropping = useSignal(null);
  const drop = async ({ name }) => {
    dropping.value = null;
    try {
      await dropIssuer(name);
      sayDone(`The issuer ${name} was removed.`);
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Issuers" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => editing.value = "new", children: "New issuer" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      "A service such as Keycloak or Auth0 that signs people in already. Its tokens are accepted here, and policies read their claims. ",
      /* @__PURE__ */ a4("a", { href: `${home}/docs/how-to/external-issuers`, target: "_blank", rel: "noopener", children: "How to set one up" })
    ] }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !issuers && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the issuers…" }),
    issuers?.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "No issuer yet: only the tokens of Tidegate itself are accepted." }),
    issuers && issuers.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "List of issuers", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Issuer" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Audience" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Group or user" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "People" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: /* @__PURE__ */ a4("span", { class: "sr", children: "Actions" }) })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: issuers.map((issuer) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: issuer.name }),
        /* @__PURE__ */ a4("td", { children: /* @__PURE__ */ a4("code", { children: issuer.issuer }) }),
        /* @__PURE__ */ a4("td", { children: audienceOf(issuer).map((one2) => /* @__PURE__ */ a4("code", { class: "line", children: one2 }, one2)) }),
        /* @__PURE__ */ a4("td", { children: [
          [issuer.user_claim, issuer.role_claim].filter(Boolean).map((claim) => /* @__PURE__ */ a4("span", { class: "line", children: [
            "claim ",
            /* @__PURE__ */ a4("code", { children: claim })
          ] }, claim)),
          issuer.default_role && /* @__PURE__ */ a4("span", { class: "line", children: [
            "else ",
            issuer.default_role
          ] })
        ] }),
        /* @__PURE__ */ a4("td", { children: issuer.create_members ? "recorded as members" : "not recorded" }),
        /* @__PURE__ */ a4("td", { class: "actions", children: [
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Edit ${issuer.name}`, onClick: () => editing.value = issuer, children: "Edit" }),
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Remove ${issuer.name}`, onClick: () => dropping.value = issuer, children: "Remove" })
        ] })
      ] }, issuer.name)) })
    ] }) }),
    editing.value && /* @__PURE__ */ a4(IssuerForm, { issuer: editing.value === "new" ? null : editing.value, onDone: reload, onClose: () => editing.value = null }),
    dropping.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: `Remove ${dropping.value.name}?`,
        action: "Remove",
        text: "Its tokens are refused at once. Members that were recorded stay.",
        onConfirm: () => void drop(dropping.value),
        onClose: () => dropping.value = null
      }
    )
  ] });
}
function IssuerForm({ issuer, onDone, onClose }) {
  const save = async (fields) => {
    const members2 = membersOf2(fields);
    const name = issuer?.name ?? textOf2(fields, "name");
    await (issuer ? changeIssuer(name, members2) : createIssuer({ name, ...members2 }));
    sayDone(issuer ? `The issuer ${name} was changed.` : `The issuer ${name} was added.`);
    await onDone();
  };
  const text = (name, label, placeholder, required = false) => /* @__PURE__ */ a4("label", { children: [
    label,
    /* @__PURE__ */ a4("input", { name, required, placeholder, autocomplete: "off", spellcheck: false, defaultValue: String(issuer?.[name] ?? "") })
  ] });
  return /* @__PURE__ */ a4(FormDialog, { title: issuer ? `Issuer ${issuer.name}` : "New issuer", action: issuer ? "Save" : "Add issuer", onSave: save, onClose, children: [
    !issuer && text("name", "Name, which you choose", "keycloak", true),
    text("issuer", "Issuer, exactly as in the claim iss", "https://id.example.com/realms/shop", true),
    /* @__PURE__ */ a4("label", { children: [
      "Audiences, one a line; a token must name one",
      /* @__PURE__ */ a4("textarea", { name: "audience", required: true, rows: 2, spellcheck: false, children: issuer ? audienceOf(issuer).join("\n") : "" })
    ] }),
    text("jwks_url", "Address of its keys", "found by discovery"),
    text("user_claim", "Claim that names a user", "none"),
    text("role_claim", "Claim that names groups", "none, such as realm_access.roles"),
    text("default_role", "Group or user of tokens that name none", "none"),
    /* @__PURE__ */ a4("label", { children: [
      "Claims that policies read, one a line; none for all",
      /* @__PURE__ */ a4("textarea", { name: "claims", rows: 2, spellcheck: false, placeholder: "all, if they are short enough", children: issuer?.claims?.join("\n") ?? "" })
    ] }),
    /* @__PURE__ */ a4("label", { class: "check", children: [
      /* @__PURE__ */ a4("input", { name: "create_members", type: "checkbox", defaultChecked: issuer?.create_members }),
      " Record people of groups as members, so that they can be listed and disabled"
    ] })
  ] });
}
var audienceOf = ({ audience }) => Array.isArray(audience) ? audience : [audience];
var claimsOf2 = (fields) => {
  const claims2 = listOf(textOf2(fields, "claims"));
  return claims2.length > 0 ? claims2 : null;
};
var membersOf2 = (fields) => ({
  issuer: textOf2(fields, "issuer"),
  audience: listOf(textOf2(fields, "audience")),
  jwks_url: orNull(textOf2(fields, "jwks_url")),
  user_claim: orNull(textOf2(fields, "user_claim")),
  role_claim: orNull(textOf2(fields, "role_claim")),
  default_role: orNull(textOf2(fields, "default_role")),
  claims: claimsOf2(fields),
  create_members: fields.get("create_members") !== null
});

// src/people/rights.tsx
var WORDS2 = [["none", "none"], ["read", "read"], ["write", "read, write"]];
var SAID = { none: "now has no right on", read: "may now read", write: "may now read and write", other: "has some rights on" };
function Rights() {
  const schemas = [...new Set((tables.value ?? []).map(({ schema: schema2 }) => schema2))];
  const chosen2 = useSignal(null);
  const schema = chosen2.value ?? (schemas.includes("public") ? "public" : schemas[0] ?? "public");
  const { value: rights, problem, reload } = useLoaded(() => loadRights(schema), [schema]);
  const columns = useSignal(null);
  const set = async (table2, holder, word) => {
    try {
      await setRight(schema, table2, holder, word);
      sayDone(`${holder.name} ${SAID[word]} ${table2}.`);
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Rights" }),
      schemas.length > 1 && /* @__PURE__ */ a4("select", { "aria-label": "Schema", value: schema, onChange: (event) => chosen2.value = event.currentTarget.value, children: schemas.map((name) => /* @__PURE__ */ a4("option", { value: name, children: name }, name)) })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "What PostgreSQL lets each user and group do. A right that comes through a group or through PUBLIC is shown too." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    rights?.holders.length === MOST_HOLDERS && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "The first ",
      MOST_HOLDERS,
      " users and groups are shown; GRANT in SQL reaches the others."
    ] }),
    !rights && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the rights…" }),
    rights && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "Rights by table", children: /* @__PURE__ */ a4("table", { class: "matrix", children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Table" }),
        rights.holders.map((holder) => /* @__PURE__ */ a4("th", { scope: "col", children: [
          holder.group && /* @__PURE__ */ a4("small", { children: "group " }),
          holder.name
        ] }, holder.role))
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: rights.tables.map((table2) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: table2 }),
        rights.holders.map((holder) => {
          const word = rights.words.get(cellKey(table2, holder.role)) ?? "none";
          return /* @__PURE__ */ a4("td", { class: `right ${word}`, children: [
            /* @__PURE__ */ a4(
              "select",
              {
                "aria-label": `${holder.name} on ${table2}`,
                value: word,
                onChange: (event) => void set(table2, holder, event.currentTarget.value),
                children: [
                  word === "other" && /* @__PURE__ */ a4("option", { value: "other", children: "some" }),
                  WORDS2.map(([value, text]) => /* @__PURE__ */ a4("option", { value, children: text }, value))
                ]
              }
            ),
            /* @__PURE__ */ a4("button", { type: "button", class: "quiet", "aria-label": `Columns of ${table2} for ${holder.name}`, onClick: () => columns.value = { table: table2, holder }, children: "columns" })
          ] }, holder.role);
        })
      ] }, table2)) })
    ] }) }),
    columns.value && /* @__PURE__ */ a4(
      ColumnDialog,
      {
        schema,
        ...columns.value,
        onClose: () => {
          columns.value = null;
          void reload();
        }
      }
    )
  ] });
}
function ColumnDialog({ schema, table: table2, holder, onClose }) {
  const { value: columns, problem, reload } = useLoaded(() => loadColumnRights(schema, table2, holder));
  const toggle = async (column3, right, granted) => {
    try {
      await setColumnRight(schema, table2, holder, { column: column3, right, granted });
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return /* @__PURE__ */ a4(Dialog, { title: `Columns of ${table2} for ${holder.name}`, onClose, wide: true, children: [
    /* @__PURE__ */ a4("p", { class: "hint", children: "A right on the whole table counts for each of its columns; take it away first to leave single columns." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    /* @__PURE__ */ a4("div", { class: "columns", tabIndex: 0, role: "region", "aria-label": "Rights by column", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Column" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Read" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Insert" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Change" })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: columns?.map((column3) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: column3.name }),
        COLUMN_RIGHTS.map((right) => /* @__PURE__ */ a4("td", { children: /* @__PURE__ */ a4(
          "input",
          {
            type: "checkbox",
            "aria-label": `${right} ${column3.name}`,
            checked: column3[right],
            onChange: (event) => void toggle(column3.name, right, event.currentTarget.checked)
          }
        ) }, right))
      ] }, column3.name)) })
    ] }) }),
    /* @__PURE__ */ a4("footer", { children: /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: onClose, children: "Done" }) })
  ] });
}

// src/people/sessions.tsx
var MOST = 1e3;
var when = (text) => new Date(text).toLocaleString("en-GB");
var opened = ({ grant: grant2 }) => grant2 === "impersonation" ? "View as" : grant2.replaceAll("_", " ");
function Sessions() {
  const { value: sessions, problem, reload } = useLoaded(loadSessions);
  const search = useSignal("");
  const ending = useSignal(null);
  const wanted = search.value.toLowerCase();
  const found = (sessions ?? []).filter(({ user, client_id, grant: grant2 }) => `${user} ${client_id} ${grant2}`.toLowerCase().includes(wanted));
  const end2 = async ({ id, user }) => {
    ending.value = null;
    try {
      await endSession(id);
      sayDone(`A session of ${user} was ended.`);
      await reload();
    } catch (error) {
      sayError(error);
    }
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Sessions" }),
      /* @__PURE__ */ a4("input", { type: "search", "aria-label": "Find in the sessions", placeholder: "Find", value: search.value, onInput: (event) => search.value = event.currentTarget.value }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => void reload(), children: "Reload" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "Applications and devices that are signed in. Sessions of anonymous visitors are not listed." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !sessions && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the sessions…" }),
    sessions && found.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "No session matches." }),
    sessions?.length === MOST && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "The ",
      MOST.toLocaleString("en"),
      " sessions that were used last are shown."
    ] }),
    found.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "List of sessions", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "User" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Client" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Opened by" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Since" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Last used" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Ends" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: /* @__PURE__ */ a4("span", { class: "sr", children: "Actions" }) })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: found.map((session2) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: session2.user }),
        /* @__PURE__ */ a4("td", { children: session2.client_id }),
        /* @__PURE__ */ a4("td", { children: opened(session2) }),
        /* @__PURE__ */ a4("td", { class: "when", children: when(session2.created_at) }),
        /* @__PURE__ */ a4("td", { class: "when", children: when(session2.refreshed_at) }),
        /* @__PURE__ */ a4("td", { class: "when", children: when(session2.expires_at) }),
        /* @__PURE__ */ a4("td", { class: "actions", children: session2.current ? "this one" : /* @__PURE__ */ a4("button", { type: "button", "aria-label": `End the session of ${session2.user} since ${when(session2.created_at)}`, onClick: () => ending.value = session2, children: "End" }) })
      ] }, session2.id)) })
    ] }) }),
    ending.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: `End this session of ${ending.value.user}?`,
        action: "End session",
        text: "The application must sign the user in again. Other sessions of the user go on.",
        onConfirm: () => void end2(ending.value),
        onClose: () => ending.value = null
      }
    )
  ] });
}

// src/people/users.tsx
function Users() {
  const after = useSignal("");
  const from = useSignal("");
  const { value: page, problem, reload } = useLoaded(() => loadUsers(after.value), [after.value]);
  const users2 = page?.users;
  const paged = after.value !== "" || page?.more;
  const editing = useSignal(null);
  const dropping = useSignal(null);
  const changed = async () => {
    loadUsersToView().catch(sayError);
    await reload();
  };
  const drop = async ({ user, reassign }) => {
    dropping.value = null;
    try {
      await dropUser(user.name, reassign);
      sayDone(`The user ${user.name} was deleted.`);
    } catch (error) {
      if (error instanceof ApiError && error.code === "CONFLICT" && !reassign) dropping.value = { user, reassign: true };
      else sayError(error);
    }
    await changed();
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "sheet-head", children: [
      /* @__PURE__ */ a4("h1", { children: "Users" }),
      paged && /* @__PURE__ */ a4("input", { type: "search", "aria-label": "Names from", placeholder: "Names from", spellcheck: false, autocapitalize: "none", value: from.value, onInput: (event) => from.value = event.currentTarget.value, onChange: () => after.value = before(from.value.trim()) }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => editing.value = "new", children: "New user" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: "Every user is a role of PostgreSQL: what is granted to it is what it may do, over SQL, GraphQL, methods and live changes. Members have no role; they share that of their group." }),
    problem && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem }),
    !users2 && !problem && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the users…" }),
    users2 && users2.length > 0 && /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "List of users", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Email" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Groups" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Properties" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: /* @__PURE__ */ a4("span", { class: "sr", children: "Actions" }) })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: users2.map((user) => /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "row", children: [
          user.name,
          user.default_user && /* @__PURE__ */ a4("small", { children: " default user" }),
          user.kind === "member" && /* @__PURE__ */ a4("small", { children: " member" }),
          isOwner(user) && /* @__PURE__ */ a4("small", { children: " owner" }),
          user.disabled && /* @__PURE__ */ a4($, { children: [
            " ",
            /* @__PURE__ */ a4("span", { class: "pill failed", children: "disabled" })
          ] })
        ] }),
        /* @__PURE__ */ a4("td", { children: user.email ?? "" }),
        /* @__PURE__ */ a4("td", { children: groupsOf2(user).join(", ") }),
        /* @__PURE__ */ a4("td", { children: user.properties && /* @__PURE__ */ a4("code", { children: JSON.stringify(user.properties) }) }),
        /* @__PURE__ */ a4("td", { class: "actions", children: [
          offered.value && !isOwner(user) && !user.disabled && /* @__PURE__ */ a4("button", { type: "button", class: "view-as-user", "aria-label": `View as ${user.name}`, onClick: () => void become(user.name), children: "View as" }),
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Edit ${user.name}`, onClick: () => editing.value = user, children: "Edit" }),
          !isOwner(user) && /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Delete ${user.name}`, onClick: () => dropping.value = { user, reassign: false }, children: "Delete" })
        ] })
      ] }, user.name)) })
    ] }) }),
    users2?.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "No name comes after that." }),
    paged && /* @__PURE__ */ a4("p", { children: [
      /* @__PURE__ */ a4("button", { type: "button", disabled: after.value === "", onClick: () => after.value = from.value = "", children: "First page" }),
      " ",
      /* @__PURE__ */ a4("button", { type: "button", disabled: !page?.more, onClick: () => after.value = users2.at(-1).name, children: "Next page" })
    ] }),
    editing.value && /* @__PURE__ */ a4(UserForm, { user: editing.value === "new" ? null : editing.value, onDone: changed, onClose: () => editing.value = null }),
    dropping.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: `Delete ${dropping.value.user.name}?`,
        action: dropping.value.reassign ? "Give its objects to the owner and delete" : "Delete",
        text: dropping.value.reassign ? "The user owns tables or other objects. They can be given to the owner of the database." : "Its sessions end at once. This cannot be undone.",
        onConfirm: () => void drop(dropping.value),
        onClose: () => dropping.value = null
      }
    )
  ] });
}
function UserForm({ user, onDone, onClose }) {
  const save = async (fields) => {
    const members2 = membersOf3(fields, user);
    await (user ? changeUser(user.name, members2) : createUser(members2));
    sayDone(user ? `The user ${user.name} was changed.` : `The user ${String(members2.name)} was created.`);
    await onDone();
  };
  return /* @__PURE__ */ a4(FormDialog, { title: user ? `User ${user.name}` : "New user", action: user ? "Save" : "Create user", onSave: save, onClose, children: [
    !user && /* @__PURE__ */ a4("label", { children: [
      "Name",
      /* @__PURE__ */ a4("input", { name: "name", required: true, maxLength: 32, pattern: "[A-Za-z0-9_.@+\\-]+", autocomplete: "off", spellcheck: false })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      user ? "New password" : "Password",
      /* @__PURE__ */ a4("input", { name: "password", type: "password", autocomplete: "new-password", minLength: 8, maxLength: 256, placeholder: user ? "stays as it is" : "at least 8 characters" })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      "Email",
      /* @__PURE__ */ a4("input", { name: "email", type: "email", autocomplete: "off", defaultValue: user?.email ?? "" })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      "Groups, separated by commas",
      /* @__PURE__ */ a4("input", { name: "groups", autocomplete: "off", spellcheck: false, defaultValue: user ? groupsOf2(user).join(", ") : "" })
    ] }),
    /* @__PURE__ */ a4("label", { children: [
      "Properties, a JSON object that stands in the user's tokens",
      /* @__PURE__ */ a4("textarea", { name: "properties", rows: 3, spellcheck: false, children: user?.properties ? JSON.stringify(user.properties, null, 2) : "" })
    ] }),
    !user && /* @__PURE__ */ a4("label", { class: "check", children: [
      /* @__PURE__ */ a4("input", { name: "member", type: "checkbox" }),
      " Member: a user without a role, in exactly one group"
    ] }),
    /* @__PURE__ */ a4("label", { class: "check", children: [
      /* @__PURE__ */ a4("input", { name: "default_user", type: "checkbox", defaultChecked: user?.default_user }),
      " Default user: requests without a token run as this user"
    ] }),
    user && mayBeDisabled(user) && /* @__PURE__ */ a4("label", { class: "check", children: [
      /* @__PURE__ */ a4("input", { name: "disabled", type: "checkbox", defaultChecked: user.disabled }),
      " Disabled: neither signs in nor sends requests; the sessions end"
    ] })
  ] });
}
var before = (name) => name === "" ? "" : `${name.slice(0, -1)}${String.fromCharCode(name.charCodeAt(name.length - 1) - 1)}~`;
var isOwner = ({ name }) => name === claims.value?.database;
var mayBeDisabled = (user) => !isOwner(user) && !user.default_user;
function propertiesOf(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The properties are no JSON object, such as {"desk": 7}: ${error.message}.`);
  }
}
function membersOf3(fields, user) {
  const groups = listOf(textOf2(fields, "groups"));
  const properties = textOf2(fields, "properties");
  const all2 = {
    email: orNull(textOf2(fields, "email")),
    user_group: groups.length === 0 ? null : groups.length === 1 ? groups[0] : groups,
    properties: properties === "" ? null : propertiesOf(properties),
    default_user: fields.get("default_user") !== null
  };
  if (user && mayBeDisabled(user)) all2.disabled = fields.get("disabled") !== null;
  const password = String(fields.get("password") ?? "");
  const changed = Object.entries(all2).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(user ? user[name] : name === "default_user" ? false : null));
  const members2 = Object.fromEntries(changed);
  if (!user) members2.name = textOf2(fields, "name");
  if (fields.get("member") !== null) members2.kind = "member";
  if (password !== "") members2.password = password;
  return members2;
}

// src/people/page.tsx
var PARTS = [
  ["users", "Users", Users],
  ["groups", "Groups", Groups],
  ["clients", "Clients", Clients],
  ["rights", "Rights", Rights],
  ["issuers", "Issuers", Issuers],
  ["sessions", "Sessions", Sessions],
  ["audit", "Audit log", Audit]
];
function PeoplePage() {
  const { part } = route.value;
  const [name, title, Part] = PARTS.find(([name2]) => name2 === part) ?? PARTS[0];
  if (!claims.value?.superUser) {
    return /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: /* @__PURE__ */ a4("p", { class: "empty", children: [
      "Users, clients and rights are managed by the owner of the database. Your own sessions and password are on ",
      /* @__PURE__ */ a4("a", { href: `${home}/account`, children: "your account" }),
      "."
    ] }) });
  }
  return /* @__PURE__ */ a4("div", { class: "area people-area", children: [
    /* @__PURE__ */ a4("nav", { class: "tables parts", "aria-label": "People", children: [
      /* @__PURE__ */ a4("ul", { children: PARTS.map(([to, text]) => /* @__PURE__ */ a4("li", { children: /* @__PURE__ */ a4("a", { href: hrefOf({ area: "people", part: to }), "aria-current": to === name ? "page" : void 0, children: text }) }, to)) }),
      /* @__PURE__ */ a4("p", { class: "hint", children: [
        "Your own sessions, password and two-step sign-in are on ",
        /* @__PURE__ */ a4("a", { href: `${home}/account`, target: "_blank", rel: "noopener", children: "your account" }),
        "."
      ] })
    ] }),
    /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: /* @__PURE__ */ a4("div", { class: "sheet", role: "region", tabIndex: 0, "aria-label": title, children: /* @__PURE__ */ a4(Part, {}, name) }) })
  ] });
}

// src/tables/export.ts
async function exportCsv(view) {
  const { table: table2 } = view;
  const params = {};
  const list = table2.columns.map(({ name }) => ident(name)).join(", ");
  const q2 = `select ${list} from ${table2.sqlName}${where(conditions(table2, view.filters.value, params))}` + orderBy(orderTerms(table2, view.order.value));
  try {
    const answer = await request("/api/v4/sql", { body: { ...statement(q2, params), output_format: "csv" } });
    saveFile(await answer.blob(), `${table2.entry.name}.csv`);
    sayDone("The rows were exported.");
  } catch (error) {
    sayError(error);
  }
}
function saveFile(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
}

// src/query/methods.ts
var methods = y3(null);
var PATH = "/api/v4/methods";
async function loadMethods() {
  methods.value = await requestJson(PATH);
}
async function createMethod(method2, q2) {
  await request(PATH, { body: { method: method2, q: q2 } });
  await loadMethods();
}
async function changeMethod(method2, q2) {
  await request(`${PATH}/${encodeURIComponent(method2)}`, { method: "PATCH", body: { q: q2 } });
  await loadMethods();
}
async function dropMethod(method2) {
  await request(`${PATH}/${encodeURIComponent(method2)}`, { method: "DELETE" });
  await loadMethods();
}

// src/query/snippets.ts
var shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
function curl({ path, body }) {
  return [
    `curl -s ${home}${path}`,
    `  -H "Authorization: Bearer $TOKEN"`,
    `  --json ${shell(JSON.stringify(body))}`
  ].join(" \\\n");
}
function typescript({ path, body }) {
  return `const token = "…"; // an access token
const answer = await fetch(${JSON.stringify(home + path)}, {
  method: "POST",
  headers: { "Authorization": \`Bearer \${token}\`, "Content-Type": "application/json" },
  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),
});
if (!answer.ok) throw new Error((await answer.json()).message);
console.dir(await answer.json(), { depth: null });
`;
}
function python({ path, body }) {
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(home + path)},
    data=json.dumps(${literal(body)}).encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer))
`;
}
function literal(value) {
  if (value === null || value === void 0) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, of]) => `${JSON.stringify(name)}: ${literal(of)}`).join(", ")}}`;
}
var SNIPPETS = [["curl", curl], ["TypeScript", typescript], ["Python", python]];

// src/query/run.ts
var ROW_LIMIT = 5e3;
var TEXT_LIMIT = 3e7;
async function runSql(asked, abort, progress) {
  const started = performance.now();
  const body = { ...sqlBody(asked), output_format: "ndjson" };
  const answer = await request("/api/v4/sql", { body, signal: abort.signal });
  const timed = (result) => ({ ...result, milliseconds: performance.now() - started });
  if (!answer.headers.get("Content-Type")?.includes("ndjson")) return timed(tableOf(parseExact(await answer.text())));
  return timed(await readLines(answer, progress));
}
var sqlBody = ({ q: q2, params }) => Object.keys(params).length > 0 ? { q: q2, params } : { q: q2 };
async function runAll(asked, abort) {
  const started = performance.now();
  const answer = await request("/api/v4/sql", { body: asked.map(sqlBody), signal: abort.signal });
  const answers = parseExact(await answer.text());
  const shown2 = answers.findLast(({ schema }) => Object.keys(schema).length > 0) ?? answers.at(-1);
  const written = answers.flatMap(({ affected_rows: rows }) => rows === void 0 ? [] : [Number(rows)]);
  const affected = written.length > 0 ? written.reduce((sum2, rows) => sum2 + rows) : void 0;
  return { ...tableOf(shown2), affected, statements: asked.length, milliseconds: performance.now() - started };
}
async function readLines(answer, progress) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const rows = [];
  let rest = "";
  let length = 0;
  let cut = false;
  const take = (line) => {
    if (line !== "") rows.push(parseExact(line));
  };
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop() ?? "";
      length += part.value.length;
      lines.slice(0, ROW_LIMIT - rows.length + 1).forEach(take);
      progress(rows.length);
      cut = rows.length > ROW_LIMIT || length > TEXT_LIMIT;
      if (cut) {
        await reader.cancel();
        break;
      }
    }
  } catch (error) {
    if (error instanceof DOMException) throw error;
    throw new ApiError(0, "BROKEN", `The statement failed after ${rows.length} rows had arrived. They are not shown, because they are not the whole answer.`);
  }
  if (!cut) take(rest);
  return { ...table(rows.slice(0, ROW_LIMIT)), cut };
}
function table(rows) {
  const columns = Object.keys(rows[0] ?? {});
  return { columns, rows: rows.map((row) => columns.map((name) => row[name])) };
}
function tableOf({ schema, data, affected_rows: affected }) {
  const columns = Object.keys(schema);
  const rows = data.slice(0, ROW_LIMIT).map((row) => columns.map((name) => row[name]));
  return { columns, rows, cut: data.length > ROW_LIMIT, affected };
}
async function runMethod(method2, params, abort) {
  const started = performance.now();
  const body = { jsonrpc: "2.0", method: method2, params, id: 1 };
  const { result, error } = await requestJson("/api/v4/call", { body, signal: abort.signal });
  if (error) {
    const { message, ...details } = error.data ?? {};
    throw new ApiError(error.code, error.message, message ?? error.message, details);
  }
  return { ...tableOf(result), milliseconds: performance.now() - started };
}
var runGraphql = (schema, query, variables2, abort) => requestJson(`/api/graphql/schema/${encodeURIComponent(schema)}`, { body: { query, variables: variables2 }, signal: abort?.signal });
function listOf2(answer) {
  const list = Object.values(answer.data ?? {}).find((value) => Array.isArray(value) && value.length > 0 && typeof value[0] === "object");
  return list ? { ...table(list), cut: false } : null;
}
async function explain(asked, measure, abort) {
  const options = measure ? "format json, analyze, buffers" : "format json";
  const body = sqlBody({ ...asked, q: `explain (${options}) ${asked.q}` });
  const { data } = await requestJson("/api/v4/sql", { body, signal: abort.signal });
  const plan = Object.values(data[0] ?? {})[0];
  return JSON.parse(typeof plan === "string" ? plan : stringifyExact(plan))[0];
}
var explainPrefix = (measure) => (measure ? "explain (format json, analyze, buffers) " : "explain (format json) ").length;

// src/query/statements.ts
var COMMENT = String.raw`--[^\n]*|\/\*[\s\S]*?\*\/`;
var QUOTED = String.raw`\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*|)\$[\s\S]*?\$\1\$`;
var bare = (text) => text.replace(new RegExp(`${COMMENT}|${QUOTED}`, "g"), " ");
var isEmpty = (text) => text.replace(new RegExp(COMMENT, "g"), "").trim() === "";
function statementsOf(text) {
  const whole = /\bbegin\s+atomic\b/i.test(bare(text));
  const cuts = whole ? [] : semicolons(text);
  const found = [];
  let from = 0;
  for (const to of [...cuts, text.length]) {
    const part = text.slice(from, to).replace(/[\s;]+$/, "");
    const blank = part.length - part.trimStart().length;
    if (!isEmpty(part)) found.push({ q: part.trimStart(), at: from + blank });
    from = to + 1;
  }
  return found;
}
var BEGIN = /^\s*(begin(\s+(work|transaction))?|start\s+transaction)\s*$/i;
var COMMIT = /^\s*(commit|end)(\s+(work|transaction))?\s*$/i;
var CONTROL = /^\s*(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release)\b/i;
var OTHERWISE = [
  [/^\s*\\/, "Commands of psql, which begin with a backslash, do not work here. The Tables area shows tables with their structure."],
  [/^\s*copy\b/i, "COPY is not available here. Import CSV and Export CSV of a table do the same."]
];
function toSend(all2) {
  const other = OTHERWISE.find(([begins]) => all2.some(({ q: q2 }) => begins.test(bare(q2))));
  if (other) throw new Error(other[1]);
  const framed = all2.length > 1 && BEGIN.test(bare(all2[0].q)) && COMMIT.test(bare(all2.at(-1).q));
  const inner = framed ? all2.slice(1, -1) : all2;
  const control = inner.map(({ q: q2 }) => CONTROL.exec(bare(q2))?.[1]).find((word) => word !== void 0);
  if (!control) return inner;
  throw new Error(
    `${control.toUpperCase().replace(/\s+/, " ")} is not needed here: what you run is one transaction, which is committed if every statement succeeds. BEGIN and COMMIT are taken only around everything that you run.`
  );
}
function semicolons(text) {
  const places = [];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(new RegExp(`${COMMENT}|${QUOTED}|[();]`, "g"))) {
    if (token === "(") depth += 1;
    if (token === ")") depth -= 1;
    if (token === ";" && depth <= 0) places.push(index);
  }
  return places;
}

// src/query/state.ts
var DEFINITION = /^\s*(create|drop|alter|comment|grant|revoke|do|call|import)\b/i;
var mode = y3("sql");
var texts = { sql: y3(""), graphql: y3(""), methods: y3("") };
var variables = y3("");
var values = y3({});
var graphqlSchema = y3("public");
var method = y3(null);
var running = y3(null);
var outcomes = { sql: y3(null), graphql: y3(null), methods: y3(null) };
var outcome = O(() => outcomes[mode.value].value);
var selection = y3(null);
var replaced = y3(0);
function replace(of, text) {
  write(of, text);
  replaced.value += 1;
}
x2(() => {
  texts.sql.value = draft("sql");
  texts.graphql.value = draft("graphql");
  texts.methods.value = "";
  replaced.value = replaced.peek() + 1;
});
function write(of, text) {
  texts[of].value = text;
  if (of !== "methods") saveDraft(of, text);
}
function chosen() {
  const text = texts.sql.value;
  const { from, to } = selection.value ?? { from: 0, to: text.length };
  const found = toSend(statementsOf(text.slice(from, to)));
  return found.map(({ q: q2, at }) => ({ q: q2, at: at + from }));
}
function chosenOne() {
  const [first, second] = chosen();
  if (second) throw new Error("This takes one statement. Select the one that you mean.");
  if (!first) throw new Error("Nothing is selected but blanks or a comment.");
  return { ...first, params: parametersOf(first.q) };
}
var parametersOf = (q2) => Object.fromEntries(placeholders(q2).map((name) => [name, valueOf(values.value[name] ?? null)]));
function readVariables() {
  const text = variables.value.trim();
  if (text === "") return {};
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`The variables are no JSON: ${error.message}.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error('The variables must be a JSON object, such as {"id": 1}.');
  return value;
}
function valueOf(text) {
  if (text === null || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
var placeholders = (text) => [...new Set([...bare(text).matchAll(/(?<![:\w\])]):([A-Za-z_]\w*)/g)].map((found) => found[1]))];
async function during(work, startOf2 = (_4) => 0) {
  const of = mode.value;
  running.value?.abort.abort();
  const abort = new AbortController();
  running.value = { abort, started: performance.now(), rows: 0 };
  try {
    outcomes[of].value = await work(abort);
  } catch (error) {
    outcomes[of].value = { kind: "failure", failure: failureOf(error, startOf2) };
  } finally {
    if (running.value?.abort === abort) running.value = null;
  }
}
var NUMBERED = /^\[(\d+)\]: /;
function failureOf(error, startOf2) {
  if (isAbort(error)) return { text: "Cancelled. The statement was stopped in the database.", at: null, cancelled: true };
  if (!(error instanceof ApiError)) return { text: sentence(error), at: null };
  const numbered = NUMBERED.exec(error.message);
  const index = Number(numbered?.[1] ?? 0);
  const { position } = error.details;
  const at = position === void 0 ? numbered ? startOf2(index) : null : Math.max(0, startOf2(index) + Number(position) - 1);
  if (!numbered) return { text: sentence(error), at };
  const said = new ApiError(error.status, error.code, error.message.replace(NUMBERED, ""), error.details);
  return { text: `Statement ${index + 1}: ${sentence(said)} Nothing was changed by the others either.`, at };
}
function run() {
  const of = mode.value;
  const text = texts[of].value.trim();
  if (text === "" || running.value) return Promise.resolve();
  if (of === "sql") return runStatements();
  if (of === "graphql") {
    remember(of, text);
    return during((abort) => graphqlOutcome(text, abort));
  }
  return during(async (abort) => ({ kind: "rows", result: await runMethod(method.value, parametersOf(text), abort) }));
}
function runStatements() {
  const { from, to } = selection.value ?? { from: 0, to: void 0 };
  remember("sql", texts.sql.value.slice(from, to).trim());
  let all2 = [];
  return during(async (abort) => {
    all2 = chosen();
    if (all2.length === 0) throw new Error("There is no statement here to run.");
    const asked = all2.map(({ q: q2 }) => ({ q: q2, params: parametersOf(q2) }));
    const progress = (rows) => {
      if (running.value?.abort === abort) running.value = { ...running.value, rows };
    };
    const result = await (asked.length === 1 ? runSql(asked[0], abort, progress) : runAll(asked, abort));
    if (all2.some(({ q: q2 }) => DEFINITION.test(bare(q2)))) void loadTables().catch(() => void 0);
    return { kind: "rows", result };
  }, (index) => all2[index]?.at ?? 0);
}
async function graphqlOutcome(text, abort) {
  const started = performance.now();
  const answer = await runGraphql(graphqlSchema.value, text, readVariables(), abort);
  const milliseconds = performance.now() - started;
  const found = listOf2(answer);
  return { kind: "graphql", answer, list: found && { ...found, milliseconds }, milliseconds };
}
var runExplain = (measure) => during(
  async (abort) => ({ kind: "plan", explained: await explain(chosenOne(), measure, abort) }),
  () => (chosen()[0]?.at ?? 0) - explainPrefix(measure)
);
var cancel = () => running.value?.abort.abort();
function currentCall() {
  if (mode.value === "graphql") {
    return { path: `/api/graphql/schema/${encodeURIComponent(graphqlSchema.value)}`, body: { query: texts.graphql.value.trim(), variables: readVariables() } };
  }
  if (mode.value === "methods") return { path: "/api/v4/call", body: { jsonrpc: "2.0", method: method.value, params: parametersOf(texts.methods.value), id: 1 } };
  const bodies = chosen().map(({ q: q2 }) => sqlBody({ q: q2, params: parametersOf(q2) }));
  return { path: "/api/v4/sql", body: bodies.length === 1 ? bodies[0] : bodies };
}

// src/query/dialogs.tsx
function SaveMethod({ q: q2, onSaved, onClose }) {
  const name = useSignal("");
  const problem = useSignal(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await createMethod(name.value.trim(), q2);
      sayDone(`The method ${name.value.trim()} was saved.`);
      onSaved(name.value.trim());
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  return /* @__PURE__ */ a4(Dialog, { title: "Save as method", onClose, children: /* @__PURE__ */ a4("form", { class: "form", onSubmit: save, children: [
    /* @__PURE__ */ a4("p", { children: "A method is a statement under a name, which applications call over JSON-RPC with values for its placeholders." }),
    problem.value && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem.value }),
    /* @__PURE__ */ a4("label", { children: [
      "Name",
      /* @__PURE__ */ a4("input", { required: true, pattern: "[A-Za-z_][A-Za-z0-9_.\\-]*", maxLength: 128, spellcheck: false, autocomplete: "off", value: name.value, onInput: (event) => name.value = event.currentTarget.value })
    ] }),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: "Cancel" }),
      /* @__PURE__ */ a4("button", { type: "submit", class: "primary", children: "Save method" })
    ] })
  ] }) });
}
function CopyAs({ call, onClose }) {
  const chosen2 = useSignal(0);
  const text = SNIPPETS[chosen2.value][1](call);
  return /* @__PURE__ */ a4(Dialog, { title: "Copy as", onClose, wide: true, children: [
    /* @__PURE__ */ a4("div", { class: "tabs", role: "group", "aria-label": "Language", children: SNIPPETS.map(([name], index) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": chosen2.value === index, onClick: () => chosen2.value = index, children: name }, name)) }),
    /* @__PURE__ */ a4("textarea", { readOnly: true, rows: 14, "aria-label": "Snippet", value: text, spellcheck: false }),
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      "The access token is not part of it: ",
      /* @__PURE__ */ a4("a", { href: `${home}/docs/how-to/curl#a-token`, target: "_blank", rel: "noopener", children: "how to get one" }),
      "."
    ] }),
    /* @__PURE__ */ a4("footer", { children: /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => void copyText(text), children: "Copy" }) })
  ] });
}
function History({ onClose }) {
  const choose = (text, of) => {
    mode.value = of;
    replace(of, text);
    onClose();
  };
  return /* @__PURE__ */ a4(Dialog, { title: "History", onClose, wide: true, children: [
    /* @__PURE__ */ a4("p", { class: "hint", children: "Statements that were run in this browser, without values and answers. They stay here until you clear them or sign out." }),
    past.value.length === 0 && /* @__PURE__ */ a4("p", { children: "Nothing was run yet." }),
    /* @__PURE__ */ a4("ul", { class: "history", tabIndex: 0, "aria-label": "Statements, newest first", children: past.value.map((entry) => /* @__PURE__ */ a4("li", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: () => choose(entry.text, entry.mode), children: [
      /* @__PURE__ */ a4("small", { children: [
        entry.mode === "sql" ? "SQL" : "GraphQL",
        " · ",
        new Date(entry.at).toLocaleString("en-GB")
      ] }),
      /* @__PURE__ */ a4("code", { children: entry.text.slice(0, 300) })
    ] }) }, entry.at)) }),
    /* @__PURE__ */ a4("footer", { children: [
      past.value.length > 0 && /* @__PURE__ */ a4("button", { type: "button", onClick: forget, children: "Clear history" }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: "Close" })
    ] })
  ] });
}

// src/catalog/names.ts
var MOST2 = 2e4;
var QUERY2 = `
select n.nspname as schema, c.relname as "table", array_agg(a.attname::text order by a.attnum) as columns
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and a.attnum > 0 and not a.attisdropped
  and n.nspname !~ '^pg_' and n.nspname not in (${HIDDEN_SCHEMAS})
  and has_schema_privilege(n.oid, 'USAGE') and has_any_column_privilege(c.oid, 'SELECT')
group by 1, 2 order by 1, 2 limit ${MOST2 / 20}`;
async function columnNames() {
  const names = {};
  for (const row of (await sql(statement(QUERY2))).data) {
    (names[row.schema] ??= {})[row.table] = row.columns;
  }
  return names;
}
var INTROSPECTION = `query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name }
  types { kind name description fields(includeDeprecated: true) { name description args { ...Value } type { ...Type } isDeprecated deprecationReason }
  inputFields { ...Value } interfaces { ...Type } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...Type } }
  directives { name description locations args { ...Value } } } }
fragment Value on __InputValue { name description type { ...Type } defaultValue }
fragment Type on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }`;
async function introspect(schema) {
  const { data } = await requestJson(`/api/graphql/schema/${encodeURIComponent(schema)}`, { body: { query: INTROSPECTION } });
  return data;
}

// src/query/first_document.ts
var MOST_FIELDS = 6;
function firstDocument(introspection) {
  const { queryType, types } = introspection.__schema;
  const fieldsOf = (name) => types.find((type) => type.name === name)?.fields ?? [];
  for (const field of fieldsOf(queryType.name)) {
    const columns = fieldsOf(named(field.type).name).filter(({ type }) => named(type).kind !== "OBJECT" && !isList(type));
    if (isList(field.type) && columns.length > 0 && field.args.some(({ name }) => name === "limit")) {
      const lines = columns.slice(0, MOST_FIELDS).map(({ name }) => `    ${name}
`);
      return `{
  ${field.name}(limit: 10) {
${lines.join("")}  }
}`;
    }
  }
  return null;
}
var named = (type) => type.ofType ? named(type.ofType) : type;
var isList = (type) => type.kind === "LIST" || type.kind === "NON_NULL" && type.ofType != null && isList(type.ofType);

// src/query/editor_box.tsx
var EDITOR = "./editor.js";
var load2 = () => import(EDITOR);
function EditorBox(props) {
  const host = T2(null);
  const editor = T2(null);
  const latest = T2(props);
  latest.current = props;
  A2(() => {
    let gone = false;
    void load2().then(({ createEditor }) => {
      if (gone || !host.current) return;
      editor.current = createEditor({
        parent: host.current,
        text: latest.current.text,
        label: props.label,
        language: props.language,
        hint: props.hint,
        onChange: (text) => latest.current.onChange(text),
        onSelect: (part) => latest.current.onSelect(part),
        onRun: () => latest.current.onRun()
      });
      latest.current.onSelect(null);
      void fillNames(editor.current, props);
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [props.language, props.label, props.graphqlSchema]);
  A2(() => {
    if (editor.current && editor.current.text() !== props.text) editor.current.setText(props.text);
  }, [replaced.value]);
  A2(() => {
    editor.current?.mark(props.failure?.at == null ? null : props.failure.text, props.failure?.at ?? 0);
  }, [props.failure]);
  return /* @__PURE__ */ a4("div", { class: "editor", ref: host });
}
async function fillNames(editor, { language, graphqlSchema: graphqlSchema2 }) {
  try {
    if (language === "sql") editor.setTables(await columnNames());
    if (language === "graphql" && graphqlSchema2) {
      const introspection = await introspect(graphqlSchema2);
      editor.setSchema(introspection);
      if (editor.text() === "") editor.setText(firstDocument(introspection) ?? "");
    }
  } catch {
  }
}

// src/query/map.tsx
var WIDTH = 900;
var HEIGHT = 420;
var MARGIN = 24;
var MOST_LABELS = 25;
function Map2({ shapes }) {
  const points = shapes.flatMap(({ rings }) => rings.flat());
  const place = projection(points);
  const labelled = shapes.length <= MOST_LABELS;
  const path = (rings, close2) => rings.map((ring) => `M${ring.map((point) => place(point).map((at) => at.toFixed(1)).join(" ")).join("L")}${close2 ? "Z" : ""}`).join("");
  return /* @__PURE__ */ a4("svg", { class: "map", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${shapes.length} shapes drawn to fit`, children: shapes.map(({ kind, rings, label }, index) => {
    if (kind === "point") {
      const [x3, y5] = place(rings[0][0]);
      const left = x3 > WIDTH / 2;
      return /* @__PURE__ */ a4("g", { children: [
        /* @__PURE__ */ a4("circle", { cx: x3, cy: y5, r: 6, children: /* @__PURE__ */ a4("title", { children: label }) }),
        labelled && label !== "" && /* @__PURE__ */ a4("text", { x: left ? x3 - 18 : x3 + 18, y: y5, "text-anchor": left ? "end" : "start", children: label })
      ] }, index);
    }
    return /* @__PURE__ */ a4("path", { class: kind, d: path(rings, kind === "area"), children: /* @__PURE__ */ a4("title", { children: label }) }, index);
  }) });
}
function projection(points) {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x3, y5] of points) {
    west = Math.min(west, x3);
    east = Math.max(east, x3);
    south = Math.min(south, y5);
    north = Math.max(north, y5);
  }
  const degrees = west >= -180 && east <= 180 && south >= -90 && north <= 90;
  const squeeze = degrees ? Math.max(0.1, Math.cos((south + north) / 2 * (Math.PI / 180))) : 1;
  const scale = Math.min(
    (WIDTH - 2 * MARGIN) / Math.max(1e-9, (east - west) * squeeze),
    (HEIGHT - 2 * MARGIN) / Math.max(1e-9, north - south)
  );
  const [middleX, middleY] = [(west + east) / 2, (south + north) / 2];
  return ([x3, y5]) => [WIDTH / 2 + (x3 - middleX) * squeeze * scale, HEIGHT / 2 - (y5 - middleY) * scale];
}

// src/query/plan.tsx
function PlanTree({ explained }) {
  const { Plan: root2 } = explained;
  const measured = root2["Actual Total Time"] !== void 0;
  return /* @__PURE__ */ a4("div", { class: "plan", role: "region", tabIndex: 0, "aria-label": "Plan", children: [
    /* @__PURE__ */ a4("p", { class: "hint", children: measured ? `Run in ${explained["Execution Time"]} ms, planned in ${explained["Planning Time"]} ms. Bars show time.` : "Estimated, not run. Bars show cost." }),
    /* @__PURE__ */ a4("ul", { class: "plan-tree", children: /* @__PURE__ */ a4(Node, { plan: root2, whole: weight(root2), stopped: false }) })
  ] });
}
function weight(plan) {
  const time = plan["Actual Total Time"];
  return time === void 0 ? plan["Total Cost"] : time * (plan["Actual Loops"] ?? 1);
}
var SHOWN = /Cond|Filter|Key|Strategy|Join Type|Rows Removed|Hit Blocks|Read Blocks|Method|Memory|Workers/;
var number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
var READS_ALL = /^(Sort|Hash|Aggregate|Materialize)$/;
function Node({ plan, whole, stopped }) {
  const below = plan.Plans ?? [];
  const own = Math.max(0, weight(plan) - below.reduce((sum2, child) => sum2 + weight(child), 0));
  const share = whole > 0 ? own / whole : 0;
  const details = Object.entries(plan).filter(([name, value]) => SHOWN.test(name) && value !== 0);
  const actual = plan["Actual Rows"];
  const stops = plan["Node Type"] === "Limit" || stopped && !READS_ALL.test(plan["Node Type"]);
  const off = actual !== void 0 && Math.max(actual, 1) / Math.max(plan["Plan Rows"], 1);
  return /* @__PURE__ */ a4("li", { children: [
    /* @__PURE__ */ a4("div", { class: "plan-node", children: [
      /* @__PURE__ */ a4("p", { children: [
        /* @__PURE__ */ a4("strong", { children: plan["Node Type"] }),
        " ",
        plan["Relation Name"] && /* @__PURE__ */ a4("code", { children: plan["Relation Name"] }),
        " ",
        plan["Index Name"] && /* @__PURE__ */ a4("small", { children: [
          "by ",
          /* @__PURE__ */ a4("code", { children: plan["Index Name"] })
        ] })
      ] }),
      /* @__PURE__ */ a4("meter", { min: 0, max: 1, value: share, "aria-label": "Share of the whole", children: [
        Math.round(share * 100),
        "%"
      ] }),
      /* @__PURE__ */ a4("small", { children: [
        Math.round(share * 100),
        "% · ",
        plan["Actual Total Time"] !== void 0 ? `${number(weight(plan))} ms` : `cost ${number(plan["Total Cost"])}`,
        " · ",
        actual !== void 0 ? `${number(actual)} rows (estimated ${number(plan["Plan Rows"])})` : `${number(plan["Plan Rows"])} rows`
      ] }),
      off !== false && (off > 10 || off < 0.1 && !stopped) && /* @__PURE__ */ a4("small", { class: "bad", children: "The estimate is far off: ANALYZE may help." }),
      details.map(([name, value]) => /* @__PURE__ */ a4("small", { class: "plan-detail", children: [
        name,
        ": ",
        /* @__PURE__ */ a4("code", { children: [
          Array.isArray(value) ? value.join(", ") : String(value),
          name.includes("Memory") && " kB"
        ] })
      ] }, name))
    ] }),
    below.length > 0 && /* @__PURE__ */ a4("ul", { children: below.map((child, index) => /* @__PURE__ */ a4(Node, { plan: child, whole, stopped: stops }, index)) })
  ] });
}

// src/grid/columns.ts
var ColumnPlaces = class {
  ends = [];
  constructor(widths) {
    let end2 = 0;
    for (const width of widths) this.ends.push(end2 += width);
  }
  get total() {
    return this.ends.at(-1) ?? 0;
  }
  left(index) {
    return index === 0 ? 0 : this.ends[index - 1] ?? 0;
  }
  width(index) {
    return (this.ends[index] ?? 0) - this.left(index);
  }
  /** The columns between two places, as first and one behind the last. */
  between(left, right) {
    const first = this.at(left);
    let last = first;
    while (last < this.ends.length && this.left(last) < right) last += 1;
    return [first, last];
  }
  /** The column at a place. */
  at(place) {
    let low = 0;
    let high = this.ends.length;
    while (low < high) {
      const middle = low + high >> 1;
      if ((this.ends[middle] ?? 0) <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};
function fill(widths, grows, space) {
  const left = space - widths.reduce((sum2, width) => sum2 + width, 0);
  const growing = grows.filter(Boolean).length;
  if (left <= 0 || growing === 0) return widths;
  const share = Math.min(MOST_GROWTH, Math.floor(left / growing));
  return widths.map((width, index) => grows[index] ? width + share : width);
}
var MOST_GROWTH = 360;

// src/grid/scroll.ts
var MAX_HEIGHT = 12e6;
var Scroll = class {
  constructor(rowHeight) {
    this.rowHeight = rowHeight;
  }
  /** The first row in view, with its fraction. */
  top = 0;
  rows = 0;
  view = 0;
  get height() {
    return Math.min(this.rows * this.rowHeight, MAX_HEIGHT);
  }
  /** Whether a pixel of the bar is more than a pixel of rows. */
  get scaled() {
    return this.rows * this.rowHeight > MAX_HEIGHT;
  }
  /** Rows that fit. */
  get visible() {
    return this.view / this.rowHeight;
  }
  get maxTop() {
    return Math.max(0, this.rows - this.visible);
  }
  /** The position of the scroll bar for the rows in view. */
  get position() {
    if (!this.scaled) return this.top * this.rowHeight;
    return this.maxTop === 0 ? 0 : this.top / this.maxTop * (this.height - this.view);
  }
  /** The bar was moved. */
  follow(position) {
    const share = this.height > this.view ? position / (this.height - this.view) : 0;
    this.moveTo(this.scaled ? share * this.maxTop : position / this.rowHeight);
  }
  moveTo(row) {
    this.top = Math.max(0, Math.min(this.maxTop, row));
  }
  /** Moves as little as needed to show a row. */
  show(row) {
    if (row < this.top) this.moveTo(row);
    else if (row + 1 > this.top + this.visible) this.moveTo(row + 1 - this.visible);
  }
};

// src/grid/grid.tsx
var ROW_HEIGHT = 30;
var OVERSCAN = 4;
var NUMBERS_WIDTH = 56;
function Grid(props) {
  const { columns, rows, active } = props;
  const box = T2(null);
  const [, draw] = _2((count2) => count2 + 1, 0);
  const [size, setSize] = d2({ width: 800, height: 400 });
  const scroll = T2(new Scroll(ROW_HEIGHT)).current;
  const left = T2(0);
  const id = w2(() => `grid${Math.random().toString(36).slice(2, 8)}`, []);
  const places = w2(() => {
    const widths = fill(columns.map(({ width: width2 }) => width2), columns.map(({ numeric }) => !numeric), size.width - NUMBERS_WIDTH);
    return new ColumnPlaces(widths);
  }, [columns, size.width]);
  scroll.rows = rows;
  scroll.view = Math.max(0, size.height - ROW_HEIGHT);
  scroll.moveTo(scroll.top);
  F2(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const from = Math.max(0, Math.floor(scroll.top) - OVERSCAN);
  const to = Math.min(rows, Math.ceil(scroll.top + scroll.visible) + OVERSCAN);
  A2(() => props.onView?.(from, to));
  const place = () => {
    if (box.current) box.current.scrollTop = scroll.position;
    draw(0);
  };
  F2(() => {
    if (active) reveal(active);
  }, [active?.row, active?.column]);
  function reveal({ row, column: column3 }) {
    const element = box.current;
    if (!element) return;
    const before2 = scroll.top;
    scroll.show(row);
    const start = places.left(column3);
    const end2 = start + places.width(column3);
    const width2 = size.width - NUMBERS_WIDTH;
    if (start < element.scrollLeft) element.scrollLeft = start;
    else if (end2 > element.scrollLeft + width2) element.scrollLeft = Math.min(start, end2 - width2);
    if (scroll.top !== before2) place();
  }
  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    left.current = element.scrollLeft;
    if (Math.abs(element.scrollTop - scroll.position) > 1) scroll.follow(element.scrollTop);
    draw(0);
  };
  A2(() => {
    const element = box.current;
    if (!element) return;
    const onWheel = (event) => {
      if (!scroll.scaled || event.deltaY === 0 || event.ctrlKey) return;
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * ROW_HEIGHT : event.deltaY;
      scroll.moveTo(scroll.top + pixels / ROW_HEIGHT);
      place();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);
  const onKeyDown = (event) => {
    if (event.target !== box.current) return;
    const at = active ?? { row: 0, column: 0 };
    const page = Math.max(1, Math.floor(scroll.visible) - 1);
    const next = step(event, at, page, { rows, columns: columns.length });
    if (next) {
      event.preventDefault();
      props.onActive(next);
    } else if (active && (event.key === "Enter" || event.key === "F2") && !event.ctrlKey) {
      event.preventDefault();
      props.onOpen?.(active);
    } else if (active && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && event.key !== " ") {
      props.onOpen?.(active, event.key);
    } else if (active && (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "c" && getSelection()?.isCollapsed) {
      props.onCopy?.(active);
    } else props.onKey?.(event);
  };
  const [first, last] = places.between(left.current, left.current + size.width);
  const drawn = [];
  for (let column3 = first; column3 < last; column3 += 1) drawn.push(column3);
  const cellId = (row, column3) => `${id}-${row}-${column3}`;
  const shown2 = active && active.row >= from && active.row < to && active.column >= first && active.column < last;
  const width = places.total + NUMBERS_WIDTH;
  return /* @__PURE__ */ a4(
    "div",
    {
      ref: box,
      class: "grid",
      role: "grid",
      "aria-label": props.label,
      tabIndex: 0,
      "aria-rowcount": rows + 1,
      "aria-colcount": columns.length,
      "aria-activedescendant": shown2 ? cellId(active.row, active.column) : void 0,
      onScroll,
      onKeyDown,
      children: /* @__PURE__ */ a4("div", { class: "grid-space", role: "presentation", style: { height: `${scroll.height + ROW_HEIGHT}px`, width: `${width}px` }, children: /* @__PURE__ */ a4("div", { class: "grid-window", role: "presentation", style: { height: `${Math.min(size.height, scroll.height + ROW_HEIGHT)}px` }, children: [
        /* @__PURE__ */ a4("div", { class: "grid-body", role: "rowgroup", style: { transform: `translateY(${(from - scroll.top + 1) * ROW_HEIGHT}px)` }, children: Array.from({ length: Math.max(0, to - from) }, (_4, offset) => from + offset).map((row) => /* @__PURE__ */ a4(
          "div",
          {
            role: "row",
            "aria-rowindex": row + 2,
            class: `grid-row ${row % 2 ? "odd" : ""} ${active?.row === row ? "current" : ""} ${props.rowClass?.(row) ?? ""}`,
            children: [
              /* @__PURE__ */ a4("span", { class: "grid-number", "aria-hidden": "true", children: (row + 1).toLocaleString("en") }),
              drawn.map((column3) => {
                const content = props.cell(row, column3);
                const isActive = active?.row === row && active.column === column3;
                return /* @__PURE__ */ a4(
                  "div",
                  {
                    id: cellId(row, column3),
                    role: "gridcell",
                    "aria-colindex": column3 + 1,
                    "aria-selected": isActive,
                    title: content?.tip,
                    class: `grid-cell ${columns[column3]?.numeric ? "numeric" : ""} ${isActive ? "active" : ""} ${content ? content.className ?? "" : "unread"}`,
                    style: { left: `${places.left(column3) + NUMBERS_WIDTH}px`, width: `${places.width(column3)}px` },
                    onClick: () => isActive && touched() ? props.onOpen?.({ row, column: column3 }) : props.onActive({ row, column: column3 }),
                    onDblClick: () => props.onOpen?.({ row, column: column3 }),
                    children: isActive && props.editor ? props.editor : content?.text ?? ""
                  },
                  column3
                );
              })
            ]
          },
          row
        )) }),
        /* @__PURE__ */ a4("div", { class: "grid-head", role: "rowgroup", children: /* @__PURE__ */ a4("div", { role: "row", "aria-rowindex": 1, class: "grid-row", children: [
          /* @__PURE__ */ a4("span", { class: "grid-number", "aria-hidden": "true", children: "#" }),
          drawn.map((column3) => {
            const { name, title, sort, header, numeric } = columns[column3];
            return /* @__PURE__ */ a4(
              "div",
              {
                role: "columnheader",
                "aria-colindex": column3 + 1,
                "aria-sort": sort,
                title,
                class: `grid-cell ${numeric ? "numeric" : ""} ${props.onHeader ? "sortable" : ""}`,
                style: { left: `${places.left(column3) + NUMBERS_WIDTH}px`, width: `${places.width(column3)}px` },
                onClick: (event) => props.onHeader?.(column3, event.shiftKey),
                children: [
                  /* @__PURE__ */ a4("span", { class: "grid-name", children: header ?? name }),
                  sort && /* @__PURE__ */ a4("span", { "aria-hidden": "true", class: "sort", children: sort === "ascending" ? "↑" : "↓" })
                ]
              },
              column3
            );
          })
        ] }) })
      ] }) })
    }
  );
}
var touched = () => matchMedia("(pointer: coarse)").matches;
function step(event, at, page, size) {
  const whole = event.ctrlKey || event.metaKey;
  const to = (row, column3) => ({
    row: Math.max(0, Math.min(size.rows - 1, row)),
    column: Math.max(0, Math.min(size.columns - 1, column3))
  });
  switch (event.key) {
    case "ArrowDown":
      return to(at.row + 1, at.column);
    case "ArrowUp":
      return to(at.row - 1, at.column);
    case "ArrowRight":
      return to(at.row, at.column + 1);
    case "ArrowLeft":
      return to(at.row, at.column - 1);
    case "PageDown":
      return to(at.row + page, at.column);
    case "PageUp":
      return to(at.row - page, at.column);
    case "Home":
      return to(whole ? 0 : at.row, 0);
    case "End":
      return to(whole ? size.rows - 1 : at.row, size.columns - 1);
    default:
      return null;
  }
}

// src/query/result_grid.tsx
var CUT = 200;
var NUMERIC = /^-?\d{1,18}\.\d+$/;
function ResultGrid({ result }) {
  const active = useSignal(null);
  const opened2 = useSignal(null);
  const columns = w2(() => result.columns.map((name, index) => column(name, result.rows, index)), [result]);
  const cell = (row, index) => {
    const value2 = result.rows[row]?.[index];
    if (value2 == null) return { text: "NULL", className: "null" };
    const text = showValue(value2);
    return { text: text.length > CUT ? `${text.slice(0, CUT)}…` : text, tip: text.length > 24 ? text.slice(0, CUT) : void 0 };
  };
  const value = opened2.value && result.rows[opened2.value.row]?.[opened2.value.column];
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(
      Grid,
      {
        label: "Result",
        columns,
        rows: result.rows.length,
        cell,
        active: active.value,
        onActive: (place) => active.value = place,
        onOpen: (place) => opened2.value = place,
        onCopy: ({ row, column: column3 }) => {
          const copied = result.rows[row]?.[column3];
          if (copied != null) void copyText(showValue(copied));
        }
      }
    ),
    opened2.value && /* @__PURE__ */ a4(Dialog, { title: result.columns[opened2.value.column] ?? "", onClose: () => opened2.value = null, wide: true, children: [
      /* @__PURE__ */ a4("textarea", { readOnly: true, rows: 16, "aria-label": "Value", value: value == null ? "NULL" : showValue(value, 2) }),
      /* @__PURE__ */ a4("footer", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: () => opened2.value = null, children: "Close" }) })
    ] })
  ] });
}
function column(name, rows, index) {
  const sample = rows.slice(0, 50).map((row) => row[index]);
  const numeric = sample.some((value) => value != null) && sample.every((value) => value == null || typeof value === "number" || value instanceof ExactNumber || typeof value === "string" && NUMERIC.test(value));
  const longest = sample.reduce((most, value) => Math.max(most, value == null ? 4 : Math.min(44, showValue(value).length)), name.length);
  return { name, title: name, width: Math.max(70, longest * 8 + 24), numeric };
}

// src/query/series.ts
var DATE = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)/;
var NUMBER = /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/;
var MOST_SERIES = 6;
function numberOf(value) {
  if (typeof value === "number") return value;
  if (value instanceof ExactNumber || typeof value === "string" && NUMBER.test(value)) return Number(String(value));
  return null;
}
var column2 = (result, index) => result.rows.map((row) => row[index]);
var all = (values2, test) => values2.some((value) => value != null) && values2.every((value) => value == null || test(value));
var isNumeric = (value) => numberOf(value) !== null;
var isDate = (value) => typeof value === "string" && DATE.test(value);
function chartOf2(result) {
  if (result.rows.length < 2) return null;
  const columns = result.columns.map((name, index) => ({ name, values: column2(result, index) }));
  const numeric = columns.filter(({ values: values2 }) => all(values2, isNumeric));
  const dated = columns.find(({ values: values2 }) => all(values2, isDate) && !values2.includes(null));
  const first = columns[0];
  const along = dated ?? (numeric.length > 1 && numeric[0] === first && rises(first.values) ? first : null);
  const drawn = numeric.filter((of) => of !== along).slice(0, MOST_SERIES);
  if (drawn.length === 0) return null;
  const series = drawn.map(({ name, values: values2 }) => ({ name, values: values2.map(numberOf) }));
  if (!along) {
    const names = numeric.includes(first) ? void 0 : first.values.map((value) => value == null ? "NULL" : showValue(value));
    return { x: result.rows.map((_row, index) => index), along: names ? first.name : "row", time: false, names, series };
  }
  const x3 = along.values.map((value) => dated ? Date.parse(String(value)) / 1e3 : numberOf(value));
  const order = x3.map((_value, index) => index).sort((a5, b3) => x3[a5] - x3[b3]);
  return {
    x: order.map((at) => x3[at]),
    along: along.name,
    time: Boolean(dated),
    series: series.map(({ name, values: values2 }) => ({ name, values: order.map((at) => values2[at] ?? null) }))
  };
}
var rises = (values2) => values2.every((value, index) => value != null && (index === 0 || numberOf(value) > numberOf(values2[index - 1])));
function shapesOf(result) {
  const index = result.columns.findIndex((_name, at) => all(column2(result, at), isGeometry));
  if (index < 0) return null;
  return result.rows.flatMap((row) => {
    const rest = row.filter((value, at) => at !== index && value != null && typeof value !== "object").slice(0, 2);
    return geometryShapes(row[index], rest.map(String).join(" · "));
  });
}
var isGeometry = (value) => {
  const of = value;
  if (typeof of !== "object" || of === null) return false;
  return "type" in of && ("coordinates" in of || "geometries" in of) || Object.keys(of).length === 2 && "x" in of && "y" in of;
};
function geometryShapes(geometry, label) {
  if (!geometry) return [];
  if (!("type" in geometry)) {
    const { x: x3, y: y5 } = geometry;
    return [{ kind: "point", rings: [[[x3, y5]]], label }];
  }
  const { type, coordinates: at } = geometry;
  switch (type) {
    case "Point":
      return [{ kind: "point", rings: [[at]], label }];
    case "MultiPoint":
      return at.map((point) => ({ kind: "point", rings: [[point]], label }));
    case "LineString":
      return [{ kind: "line", rings: [at], label }];
    case "MultiLineString":
      return [{ kind: "line", rings: at, label }];
    case "Polygon":
      return [{ kind: "area", rings: at, label }];
    case "MultiPolygon":
      return [{ kind: "area", rings: at.flat(), label }];
    default:
      return (geometry.geometries ?? []).flatMap((part) => geometryShapes(part, label));
  }
}

// src/query/outcome.tsx
function OutcomeBox() {
  const now = outcome.value;
  return /* @__PURE__ */ a4("section", { class: "outcome", "aria-label": "Result", children: [
    running.value && /* @__PURE__ */ a4(RunningBar, {}),
    !now && !running.value && /* @__PURE__ */ a4("p", { class: "hint padded", children: [
      /* @__PURE__ */ a4("span", { class: "keys", children: "Ctrl+Enter runs what is written. " }),
      "The result appears here."
    ] }),
    now?.kind === "failure" && !running.value && /* @__PURE__ */ a4("p", { class: now.failure.cancelled ? "note" : "problem flat", role: "alert", children: now.failure.text }),
    now?.kind === "plan" && /* @__PURE__ */ a4(PlanTree, { explained: now.explained }),
    now?.kind === "rows" && /* @__PURE__ */ a4(Rows, { result: now.result }, now.result.milliseconds),
    now?.kind === "graphql" && /* @__PURE__ */ a4(Graphql, { answer: now.answer, list: now.list, milliseconds: now.milliseconds }, now.milliseconds)
  ] });
}
function RunningBar() {
  const seconds = useSignal(0);
  A2(() => {
    const timer3 = setInterval(() => seconds.value = Math.floor((performance.now() - (running.value?.started ?? 0)) / 1e3), 250);
    return () => clearInterval(timer3);
  }, []);
  const rows = running.value?.rows ?? 0;
  return /* @__PURE__ */ a4("div", { class: "running", role: "status", children: [
    /* @__PURE__ */ a4("progress", { "aria-label": "Running" }),
    /* @__PURE__ */ a4("span", { children: [
      "Running for ",
      seconds.value,
      " s",
      rows > 0 && `, ${rows.toLocaleString("en")} rows so far`,
      outcome.value && outcome.value.kind !== "failure" && ". Below is the result of the run before."
    ] }),
    /* @__PURE__ */ a4("button", { type: "button", onClick: cancel, children: "Cancel" })
  ] });
}
function Rows({ result, json }) {
  const shown2 = useSignal("rows");
  const chart = w2(() => chartOf2(result), [result]);
  const shapes = w2(() => shapesOf(result), [result]);
  const parts = [["rows", "Rows"]];
  if (chart) parts.push(["chart", "Chart"]);
  if (shapes) parts.push(["map", "Map"]);
  if (json !== void 0) parts.push(["json", "JSON"]);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("div", { class: "outcome-head", children: [
      /* @__PURE__ */ a4("span", { role: "status", children: summary(result) }),
      parts.length > 1 && /* @__PURE__ */ a4("div", { class: "tabs", role: "group", "aria-label": "How to show the result", children: parts.map(([name, text]) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": shown2.value === name, onClick: () => shown2.value = name, children: text }, name)) })
    ] }),
    shown2.value === "rows" && result.rows.length > 0 && /* @__PURE__ */ a4(ResultGrid, { result }),
    shown2.value === "chart" && chart && /* @__PURE__ */ a4(ChartBox, { data: chart }),
    shown2.value === "map" && shapes && /* @__PURE__ */ a4(Map2, { shapes }),
    shown2.value === "json" && /* @__PURE__ */ a4(Json, { value: json })
  ] });
}
function summary({ rows, cut, affected, statements, milliseconds }) {
  const count2 = rows.length.toLocaleString("en");
  const time = `${Math.round(milliseconds).toLocaleString("en")} ms`;
  if (cut) return `The first ${ROW_LIMIT.toLocaleString("en")} rows, ${time}. Export CSV gives all of them.`;
  const written = affected === void 0 ? "" : `${affected.toLocaleString("en")} row${affected === 1 ? "" : "s"} written, `;
  const ran = statements === void 0 ? "" : `${statements} statements in one transaction, `;
  return `${ran}${written}${rows.length === 0 && (affected !== void 0 || statements !== void 0) ? "" : `${count2} row${rows.length === 1 ? "" : "s"}, `}${time}`;
}
var Json = ({ value }) => /* @__PURE__ */ a4("pre", { class: "json", tabIndex: 0, "aria-label": "Answer as JSON", children: stringifyExact(value, 2) });
function Graphql({ answer, list, milliseconds }) {
  return /* @__PURE__ */ a4($, { children: [
    answer.errors?.map(({ message, path, locations }, index) => /* @__PURE__ */ a4("p", { class: "problem flat", role: "alert", children: [
      message,
      path && ` (at ${path.join(".")})`,
      !path && locations?.[0] && ` (line ${locations[0].line}, column ${locations[0].column})`
    ] }, index)),
    list ? /* @__PURE__ */ a4(Rows, { result: list, json: answer }) : /* @__PURE__ */ a4($, { children: [
      /* @__PURE__ */ a4("div", { class: "outcome-head", children: /* @__PURE__ */ a4("span", { role: "status", children: [
        Math.round(milliseconds),
        " ms"
      ] }) }),
      /* @__PURE__ */ a4(Json, { value: answer })
    ] })
  ] });
}

// src/query/parameters.tsx
function Parameters() {
  const of = mode.value;
  if (of === "graphql") return /* @__PURE__ */ a4(Variables, {});
  const names = placeholders(texts[of].value);
  if (names.length === 0) return null;
  return /* @__PURE__ */ a4("div", { class: "parameters", role: "group", "aria-label": "Values", children: names.map((name) => /* @__PURE__ */ a4(Value, { name }, name)) });
}
function Value({ name }) {
  const value = values.value[name] ?? null;
  const set = (text) => values.value = { ...values.value, [name]: text };
  return /* @__PURE__ */ a4("div", { class: "filter", children: [
    /* @__PURE__ */ a4("label", { children: [
      ":",
      name,
      /* @__PURE__ */ a4("input", { spellcheck: false, autocomplete: "off", placeholder: "NULL", value: value ?? "", onInput: (event) => set(event.currentTarget.value) })
    ] }),
    value !== null && /* @__PURE__ */ a4("button", { type: "button", class: "quiet", "aria-label": `Set ${name} to NULL`, onClick: () => set(null), children: "NULL" })
  ] });
}
function Variables() {
  if (!/\$\w+\s*:/.test(texts.graphql.value) && variables.value === "") return null;
  return /* @__PURE__ */ a4("div", { class: "parameters", children: /* @__PURE__ */ a4("label", { children: [
    /* @__PURE__ */ a4("span", { children: "Variables" }),
    /* @__PURE__ */ a4("textarea", { rows: 2, spellcheck: false, placeholder: '{"name": "value"}', value: variables.value, onInput: (event) => variables.value = event.currentTarget.value })
  ] }) });
}

// src/query/page.tsx
var MODES = [["sql", "SQL"], ["graphql", "GraphQL"], ["methods", "Methods"]];
var HINTS = {
  sql: "Statements, separated by semicolons. A value is written as :name and given below. Ctrl+Space completes.",
  graphql: "A query or a mutation. Ctrl+Space completes the names of the schema.",
  methods: ""
};
function QueryPage() {
  const of = mode.value;
  const text = texts[of].value;
  const now = outcome.value;
  A2(() => {
    if (of === "methods" && !methods.value) loadMethods().catch(sayError);
  }, [of]);
  A2(() => suggest(), [tables.value]);
  A2(() => {
    if (isMember.value && mode.value === "sql") mode.value = "graphql";
  }, [isMember.value]);
  const nothingChosen = of === "methods" && !method.value;
  return /* @__PURE__ */ a4("div", { class: "area query-area", children: [
    of === "methods" && methods.value?.length !== 0 && /* @__PURE__ */ a4(MethodList, {}),
    /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: [
      /* @__PURE__ */ a4("h1", { class: "sr", children: "Query" }),
      /* @__PURE__ */ a4(Toolbar, {}),
      nothingChosen ? /* @__PURE__ */ a4(NoMethod, {}) : /* @__PURE__ */ a4($, { children: [
        /* @__PURE__ */ a4(
          EditorBox,
          {
            language: of === "graphql" ? "graphql" : "sql",
            label: of === "graphql" ? "GraphQL document" : of === "methods" ? `Statement of ${method.value}` : "SQL statement",
            hint: HINTS[of],
            text,
            onChange: (next) => write(of, next),
            onSelect: (part) => selection.value = part,
            onRun: () => void run(),
            failure: now?.kind === "failure" ? now.failure : null,
            graphqlSchema: of === "graphql" ? graphqlSchema.value : void 0
          },
          of
        ),
        of === "methods" && methodChanged() && /* @__PURE__ */ a4("p", { class: "note", children: "Call runs the method as it is saved. Save changes to call what is written." }),
        /* @__PURE__ */ a4(Parameters, {}),
        /* @__PURE__ */ a4(OutcomeBox, {})
      ] })
    ] })
  ] });
}
var methodChanged = () => methods.value?.find((one2) => one2.method === method.value)?.q !== texts.methods.value;
function NoMethod() {
  if (methods.value?.length !== 0) return /* @__PURE__ */ a4("p", { class: "empty", children: "Choose a method to see, change or call it." });
  return /* @__PURE__ */ a4("div", { class: "empty", children: [
    /* @__PURE__ */ a4("p", { children: "There is no method yet. A method is a statement under a name, which applications call with values." }),
    /* @__PURE__ */ a4("p", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => mode.value = "sql", children: "Write a statement" }),
      " and save it as a method."
    ] })
  ] });
}
function suggest() {
  const first = tables.value?.[0];
  if (first && texts.sql.value === "") replace("sql", `select * from ${first.written} limit 100`);
}
function Toolbar() {
  const of = mode.value;
  const saving = useSignal(null);
  const copying = useSignal(null);
  const looking = useSignal(false);
  const text = texts[of].value.trim();
  const ready2 = text !== "" && !running.value && (of !== "methods" || method.value !== null);
  const attempt2 = (work) => () => {
    try {
      work();
    } catch (error) {
      sayError(error);
    }
  };
  const partly = of === "sql" && selection.value !== null;
  return /* @__PURE__ */ a4("div", { class: "toolbar", role: "toolbar", "aria-label": "Query", children: [
    /* @__PURE__ */ a4("div", { class: "tabs", role: "group", "aria-label": "Language", children: MODES.filter(([name]) => name !== "sql" || !isMember.value).map(([name, label]) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": of === name, onClick: () => mode.value = name, children: label }, name)) }),
    /* @__PURE__ */ a4("button", { type: "button", class: "primary", disabled: !ready2, onClick: () => void run(), title: "Ctrl+Enter", children: of === "methods" ? "Call" : partly ? "Run selection" : "Run" }),
    of === "graphql" && /* @__PURE__ */ a4(SchemaChoice, {}),
    of === "sql" && /* @__PURE__ */ a4($, { children: [
      /* @__PURE__ */ a4("button", { type: "button", disabled: !ready2, onClick: () => void runExplain(false), children: "Explain" }),
      /* @__PURE__ */ a4("button", { type: "button", disabled: !ready2, onClick: () => void runExplain(true), title: "Runs the statement and measures each step", children: "Run and measure" }),
      /* @__PURE__ */ a4("button", { type: "button", disabled: !ready2, onClick: () => void exportResult(), children: "Export CSV" }),
      /* @__PURE__ */ a4("button", { type: "button", disabled: !ready2, onClick: attempt2(() => saving.value = chosenOne().q), children: "Save as method" })
    ] }),
    of === "methods" && method.value && /* @__PURE__ */ a4(MethodButtons, {}),
    /* @__PURE__ */ a4("button", { type: "button", disabled: !ready2, onClick: attempt2(() => copying.value = currentCall()), children: "Copy as" }),
    /* @__PURE__ */ a4("span", { class: "spread" }),
    /* @__PURE__ */ a4("button", { type: "button", onClick: () => looking.value = true, children: "History" }),
    saving.value !== null && /* @__PURE__ */ a4(
      SaveMethod,
      {
        q: saving.value,
        onClose: () => saving.value = null,
        onSaved: (name) => {
          saving.value = null;
          openMethod(name);
        }
      }
    ),
    copying.value && /* @__PURE__ */ a4(CopyAs, { call: copying.value, onClose: () => copying.value = null }),
    looking.value && /* @__PURE__ */ a4(History, { onClose: () => looking.value = false })
  ] });
}
function SchemaChoice() {
  const schemas = [...new Set((tables.value ?? []).map(({ schema }) => schema))];
  if (schemas.length < 2) return null;
  return /* @__PURE__ */ a4("label", { class: "hint schema", children: [
    "Schema",
    " ",
    /* @__PURE__ */ a4("select", { value: graphqlSchema.value, onChange: (event) => graphqlSchema.value = event.currentTarget.value, children: schemas.map((schema) => /* @__PURE__ */ a4("option", { value: schema, children: schema }, schema)) })
  ] });
}
async function exportResult() {
  try {
    const answer = await request("/api/v4/sql", { body: { ...sqlBody(chosenOne()), output_format: "csv" } });
    saveFile(await answer.blob(), "result.csv");
  } catch (error) {
    sayError(error);
  }
}
function openMethod(name) {
  const found = methods.value?.find((one2) => one2.method === name);
  if (!found) return;
  mode.value = "methods";
  method.value = name;
  replace("methods", found.q);
}
function MethodList() {
  return /* @__PURE__ */ a4("nav", { class: "tables", "aria-label": "Methods", children: [
    !methods.value && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the methods…" }),
    /* @__PURE__ */ a4("ul", { children: methods.value?.map(({ method: name }) => /* @__PURE__ */ a4("li", { children: /* @__PURE__ */ a4("button", { type: "button", class: "quiet entry", "aria-pressed": method.value === name, onClick: () => openMethod(name), children: name }) }, name)) })
  ] });
}
function MethodButtons() {
  const asking = useSignal(false);
  const name = method.value;
  const act = (work, done) => work().then(() => sayDone(done)).catch(sayError);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("button", { type: "button", disabled: !methodChanged(), onClick: () => void act(() => changeMethod(name, texts.methods.value), `The method ${name} was changed.`), children: "Save changes" }),
    /* @__PURE__ */ a4("button", { type: "button", onClick: () => asking.value = true, children: "Delete" }),
    asking.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: `Delete ${name}?`,
        action: "Delete",
        text: "Applications that call it get an error from then on.",
        onClose: () => asking.value = false,
        onConfirm: () => {
          asking.value = false;
          void act(async () => {
            await dropMethod(name);
            method.value = null;
          }, `The method ${name} was deleted.`);
        }
      }
    )
  ] });
}

// src/sign_in.tsx
function SignIn({ problem }) {
  const database = useSignal(new URLSearchParams(location.search).get("database") ?? "");
  const client = useSignal(defaultClient());
  const failed = useSignal(null);
  const submit = (event) => {
    event.preventDefault();
    failed.value = null;
    signIn(client.value.trim(), database.value.trim()).catch((error) => failed.value = error.message);
  };
  const text = failed.value ?? problem;
  return /* @__PURE__ */ a4("main", { class: "sign-in", children: [
    /* @__PURE__ */ a4(Mark, {}),
    /* @__PURE__ */ a4("h1", { children: "Tidegate console" }),
    /* @__PURE__ */ a4("p", { children: "See and edit the tables of a database, watch changes live, run SQL and GraphQL, and manage users." }),
    text && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: text }),
    /* @__PURE__ */ a4("form", { onSubmit: submit, children: [
      /* @__PURE__ */ a4("label", { children: [
        "Database",
        /* @__PURE__ */ a4("input", { name: "database", autocomplete: "organization", spellcheck: false, autocapitalize: "none", value: database.value, onInput: (event) => database.value = event.currentTarget.value, placeholder: "asked on the next page" })
      ] }),
      /* @__PURE__ */ a4("details", { children: [
        /* @__PURE__ */ a4("summary", { children: "Another OAuth client" }),
        /* @__PURE__ */ a4("label", { children: [
          "Client id",
          /* @__PURE__ */ a4("input", { name: "client", required: true, spellcheck: false, autocapitalize: "none", value: client.value, onInput: (event) => client.value = event.currentTarget.value })
        ] }),
        /* @__PURE__ */ a4("p", { class: "hint", children: [
          "A client whose redirect address is ",
          home,
          "/console/."
        ] })
      ] }),
      /* @__PURE__ */ a4("button", { type: "submit", class: "primary", children: "Sign in" })
    ] }),
    /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("a", { href: `${home}/docs/`, children: "Documentation" }) })
  ] });
}

// src/tables/edit.ts
var Conflict = class extends Error {
  /** `theirs` is the value that the row has now; undefined when the row is gone. */
  constructor(theirs) {
    super(theirs === void 0 ? "Somebody has deleted this row." : "Somebody has changed this value.");
    this.theirs = theirs;
  }
};
var byKey = (table2, key, params) => table2.key.map((column3, index) => {
  params[`k${index}`] = key[index] ?? null;
  return `${ident(column3.name)} = ${castTo(`k${index}`, column3)}`;
}).join(" and ");
async function readValue(table2, key, column3) {
  const params = {};
  const q2 = `select ${ident(column3.name)}::text as v from ${table2.sqlName} where ${byKey(table2, key, params)}`;
  const { data } = await sql(statement(q2, params));
  return data.length === 0 ? void 0 : data[0]?.v;
}
async function writeValue(table2, key, column3, change) {
  const params = { v: change.value };
  let condition2 = byKey(table2, key, params);
  if (change.was !== void 0) {
    params.was = change.was;
    condition2 += ` and ${ident(column3.name)}::text is not distinct from :was`;
  }
  const q2 = `update ${table2.sqlName} set ${ident(column3.name)} = ${castTo("v", column3)} where ${condition2}`;
  const { affected_rows: affected } = await sql(statement(q2, params));
  if (affected === 0) throw new Conflict(await readValue(table2, key, column3));
}
async function insertRow(table2, values2) {
  const params = {};
  const columns = [...values2.keys()];
  columns.forEach((column3, index) => params[`v${index}`] = values2.get(column3) ?? null);
  const list = columns.map(({ name }) => ident(name)).join(", ");
  const places = columns.map((column3, index) => castTo(`v${index}`, column3)).join(", ");
  const what = columns.length === 0 ? "default values" : `(${list}) values (${places})`;
  await sql(statement(`insert into ${table2.sqlName} ${what}`, params));
}
async function deleteRow(table2, key) {
  const params = {};
  const { affected_rows: affected } = await sql(statement(`delete from ${table2.sqlName} where ${byKey(table2, key, params)}`, params));
  if (affected === 0) throw new Conflict(void 0);
}

// src/api/feed.ts
var REFUSED = 4401;
var EXPIRED = 4440;
var RECONNECT = ["stopped", "slow_consumer"];
var LATER = ["feed_unavailable", "subscribe_timeout", "database_unavailable"];
var PAUSE = 5e3;
var feedState = y3("off");
var socket = null;
var attempt = 0;
var counter2 = 0;
var timer2;
var usedToken;
var subscriptions = /* @__PURE__ */ new Map();
function watch(watcher) {
  const id = `w${counter2 += 1}`;
  subscriptions.set(id, { ...watcher, id });
  if (socket?.readyState === WebSocket.OPEN) subscribe(id);
  else connect();
  return () => {
    subscriptions.delete(id);
    if (socket?.readyState === WebSocket.OPEN) send2({ type: "unsubscribe", id });
    if (subscriptions.size === 0) close();
  };
}
var send2 = (message) => socket?.send(JSON.stringify(message));
function subscribe(id) {
  const subscription = subscriptions.get(id);
  if (!subscription) return;
  const { schema, table: table2, cursor } = subscription;
  send2({ type: "subscription", id, schema, rel: table2, ...cursor && { after: cursor } });
}
function connect() {
  clearTimeout(timer2);
  const token = accessToken();
  if (!token || socket && socket.readyState < WebSocket.CLOSING) return;
  usedToken = token;
  feedState.value = attempt === 0 ? "connecting" : "lost";
  const opened2 = new WebSocket(`${home.replace(/^http/, "ws")}/api/v4/events`);
  socket = opened2;
  opened2.onopen = () => send2({ type: "auth", token });
  opened2.onmessage = (event) => {
    if (socket === opened2) receive(parseExact(String(event.data)));
  };
  opened2.onclose = ({ code }) => {
    if (socket !== opened2) return;
    socket = null;
    if (subscriptions.size === 0) return;
    feedState.value = "lost";
    attempt += 1;
    const again = () => timer2 = setTimeout(connect, Math.min(15e3, 250 * 2 ** attempt));
    if (code === REFUSED || code === EXPIRED) void renew().then((renewed) => renewed && again());
    else again();
  };
}
function close() {
  clearTimeout(timer2);
  const old = socket;
  socket = null;
  attempt = 0;
  old?.close();
  feedState.value = "off";
}
function receive(message) {
  if (message.type === "auth_ack") {
    attempt = 0;
    feedState.value = "live";
    for (const id of subscriptions.keys()) subscribe(id);
    return;
  }
  const subscription = subscriptions.get(message.id ?? "");
  if (!subscription) return;
  if (message.cursor) subscription.cursor = message.cursor;
  if (message.type === "subscription_ack") ready(subscription);
  else if (message.type === "batch") subscription.onChanges(changesOf(message.batch ?? {}));
  else if (message.type === "resync") subscription.onResync(message.reason ?? "");
  else if (message.type === "error") end(subscription, message);
}
function ready(subscription) {
  if (subscription.wasLive && !subscription.cursor) subscription.onResync("the connection was lost");
  subscription.wasLive = true;
  subscription.onReady();
}
function end(subscription, { error = "", message }) {
  const { id } = subscription;
  if (RECONNECT.includes(error)) return socket?.close();
  if (LATER.includes(error)) {
    subscription.onWait(message ?? error);
    setTimeout(() => socket?.readyState === WebSocket.OPEN && subscribe(id), PAUSE);
    return;
  }
  subscriptions.delete(id);
  subscription.onEnd(message ?? error);
}
function changesOf(batch) {
  const changes = [];
  for (const tables2 of Object.values(batch)) {
    for (const table2 of Object.values(tables2)) {
      const rowOf = rowsByKey(table2);
      for (const op of ["INSERT", "UPDATE", "DELETE"]) {
        for (const flat of table2[op] ?? []) {
          const key = [];
          for (let at = 0; at < flat.length; at += 2) key.push([String(flat[at]), flat[at + 1]]);
          changes.push({ op, key, row: rowOf(key) ?? Object.fromEntries(key) });
        }
      }
    }
  }
  return changes;
}
function rowsByKey({ full_data: rows = [], ...operations }) {
  const flat = Object.values(operations).find((keys) => keys.length > 0)?.[0] ?? [];
  const names = flat.filter((_part, at) => at % 2 === 0).map(String);
  const text = (values2) => JSON.stringify(values2.map(String));
  const found = /* @__PURE__ */ new Map();
  for (const row of rows) {
    const key = text(names.map((name) => row[name]));
    if (!found.has(key)) found.set(key, row);
  }
  return (key) => found.get(text(key.map(([, value]) => value)));
}
x2(() => {
  const token = accessToken();
  if (!token || !socket || token === usedToken) return;
  const subject = (of) => of.split(".")[1];
  if (socket.readyState === WebSocket.OPEN && sameSubject(subject(token), subject(usedToken ?? ""))) {
    usedToken = token;
    send2({ type: "auth", token });
  } else {
    close();
    for (const subscription of subscriptions.values()) {
      subscription.cursor = void 0;
      subscription.wasLive = false;
    }
    connect();
  }
});
function sameSubject(left = "", right = "") {
  const sub = (part) => (/"sub":"([^"]*)"/.exec(atob(part.replaceAll("-", "+").replaceAll("_", "/"))) ?? [])[1];
  return sub(left) === sub(right);
}

// src/tables/feed_panel.tsx
var TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
function FeedPanel({ view }) {
  const entries = view.feed.value;
  const note = view.feedNote.value;
  const lost = feedState.value === "lost";
  const state = lost ? "lost" : note ? "waiting" : "live";
  return /* @__PURE__ */ a4("aside", { class: "feed", "aria-label": "Live changes", children: [
    /* @__PURE__ */ a4("h2", { children: [
      "Live changes",
      /* @__PURE__ */ a4("span", { class: `pill ${state}`, children: lost ? "reconnecting" : note ? "not live" : "live" })
    ] }),
    lost && /* @__PURE__ */ a4("p", { class: "hint", children: "The connection is lost. It is tried again, and what changed in the meantime is read then." }),
    !lost && note && /* @__PURE__ */ a4("p", { class: "hint", children: note }),
    !lost && view.feedEnded.value && /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: () => view.outdated.value = true, children: "Open the table again" }) }),
    !lost && !note && entries.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "Changes by anybody appear here as they are committed.",
      view.table.canUpdate && view.table.key.length > 0 && (view.rows.value.total.value?.count ?? 0) > 0 && " Edit a cell to see one."
    ] }),
    /* @__PURE__ */ a4("ol", { class: "events", "aria-live": "polite", "aria-relevant": "additions", tabIndex: 0, "aria-label": "Changes, newest first", children: entries.map((entry) => /* @__PURE__ */ a4(Entry, { entry }, entry.id)) })
  ] });
}
var Entry = class extends x {
  shouldComponentUpdate({ entry }) {
    return entry !== this.props.entry;
  }
  render() {
    return /* @__PURE__ */ a4(Event, { entry: this.props.entry });
  }
};
function Event({ entry }) {
  const { change } = entry;
  if (!change) return /* @__PURE__ */ a4("li", { class: "event", children: /* @__PURE__ */ a4("p", { children: entry.text }) });
  const op = change.op.toLowerCase();
  const members2 = Object.entries(change.row);
  return /* @__PURE__ */ a4("li", { class: `event ${op}`, children: [
    /* @__PURE__ */ a4("p", { children: [
      /* @__PURE__ */ a4("strong", { class: `op ${op}`, children: op }),
      " ",
      /* @__PURE__ */ a4("span", { class: "event-key", children: entry.text }),
      /* @__PURE__ */ a4("time", { children: TIME.format(entry.at) })
    ] }),
    entry.differences.map(({ name, was }) => /* @__PURE__ */ a4("p", { class: "difference", children: [
      /* @__PURE__ */ a4("span", { children: name }),
      " ",
      /* @__PURE__ */ a4("del", { children: short(was) }),
      " ",
      /* @__PURE__ */ a4("span", { class: "sr", children: "became" }),
      " ",
      /* @__PURE__ */ a4("ins", { children: short(change.row[name]) })
    ] }, name)),
    entry.latency !== null && /* @__PURE__ */ a4("p", { class: "latency", children: [
      Math.round(entry.latency),
      " ms after you saved"
    ] }),
    /* @__PURE__ */ a4("details", { children: [
      /* @__PURE__ */ a4("summary", { children: members2.slice(0, 3).map(([name, value]) => `${name}: ${short(value)}`).join(" · ") }),
      /* @__PURE__ */ a4("dl", { children: members2.slice(0, 100).map(([name, value]) => /* @__PURE__ */ a4($, { children: [
        /* @__PURE__ */ a4("dt", { children: name }),
        /* @__PURE__ */ a4("dd", { children: short(value, 500) })
      ] })) })
    ] })
  ] });
}
function short(value, length = 40) {
  const text = value == null ? "NULL" : showValue(value);
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

// src/tables/filter_bar.tsx
function FilterBar({ view, onClose }) {
  const { columns } = view.table;
  const first = columns[0]?.name ?? "";
  const filters = useSignal(view.filters.value.length > 0 ? view.filters.value : [{ column: first, operator: "=", value: "" }]);
  const order = useSignal(view.order.value[0] ?? null);
  const change = (at, part) => {
    filters.value = filters.value.map((filter, index) => index === at ? { ...filter, ...part } : filter);
  };
  const apply = (event) => {
    event.preventDefault();
    const used = filters.value.filter(({ operator, value }) => !needsValue(operator) || value !== "");
    view.arrange(used, order.value ? [order.value] : []);
  };
  const clear = () => {
    view.arrange([], []);
    onClose();
  };
  const names = columns.map(({ name }) => /* @__PURE__ */ a4("option", { value: name, children: name }, name));
  return /* @__PURE__ */ a4("form", { class: "filters", onSubmit: apply, "aria-label": "Filter and order", children: [
    filters.value.map((filter, index) => /* @__PURE__ */ a4("div", { class: "filter", children: [
      /* @__PURE__ */ a4("select", { "aria-label": "Column", value: filter.column, onChange: (event) => change(index, { column: event.currentTarget.value }), children: names }),
      /* @__PURE__ */ a4("select", { "aria-label": "Comparison", value: filter.operator, onChange: (event) => change(index, { operator: event.currentTarget.value }), children: OPERATORS.map(([operator, text]) => /* @__PURE__ */ a4("option", { value: operator, children: text }, operator)) }),
      needsValue(filter.operator) && /* @__PURE__ */ a4("input", { "aria-label": "Value", placeholder: "value", value: filter.value, onInput: (event) => change(index, { value: event.currentTarget.value }) }),
      /* @__PURE__ */ a4("button", { type: "button", class: "quiet", "aria-label": "Remove this condition", onClick: () => filters.value = filters.value.filter((_4, at) => at !== index), children: "✕" })
    ] }, index)),
    /* @__PURE__ */ a4("div", { class: "filter", children: [
      /* @__PURE__ */ a4("label", { children: [
        "Order by",
        " ",
        /* @__PURE__ */ a4(
          "select",
          {
            value: order.value?.column ?? "",
            onChange: ({ currentTarget: { value } }) => order.value = value ? { column: value, descending: order.value?.descending ?? false } : null,
            children: [
              /* @__PURE__ */ a4("option", { value: "", children: "the key" }),
              names
            ]
          }
        )
      ] }),
      order.value && /* @__PURE__ */ a4("select", { "aria-label": "Direction", value: order.value.descending ? "down" : "up", onChange: ({ currentTarget: { value } }) => order.value = { column: order.value.column, descending: value === "down" }, children: [
        /* @__PURE__ */ a4("option", { value: "up", children: "ascending" }),
        /* @__PURE__ */ a4("option", { value: "down", children: "descending" })
      ] }),
      /* @__PURE__ */ a4("span", { class: "spread" }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => filters.value = [...filters.value, { column: first, operator: "=", value: "" }], children: "Add condition" }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: clear, children: "Clear" }),
      /* @__PURE__ */ a4("button", { type: "submit", class: "primary", children: "Apply" })
    ] })
  ] });
}

// src/parts/count.ts
var countOf = (number2, thing) => `${number2.toLocaleString("en")} ${thing}${number2 === 1 ? "" : "s"}`;

// src/tables/csv.ts
function parseCsv(text) {
  const rows = [];
  let row = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  const separator = separatorOf(text);
  while (at < text.length) {
    const [field, next] = text[at] === '"' ? quoted(text, at) : plain(text, at, separator);
    row.push(field);
    at = next;
    if (text[at] === separator) {
      at += 1;
      if (at === text.length) row.push(null);
      else continue;
    }
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    rows.push(row);
    row = [];
  }
  return rows;
}
function separatorOf(text) {
  const names = text.slice(0, text.search(/[\r\n]|$/)).replaceAll(/"[^"]*"/g, "");
  const times = (letter) => names.split(letter).length;
  return [",", ";", "	"].reduce((best, letter) => times(letter) > times(best) ? letter : best);
}
function plain(text, from, separator) {
  let to = from;
  while (to < text.length && text[to] !== separator && text[to] !== "\n" && text[to] !== "\r") to += 1;
  return [to === from ? null : text.slice(from, to), to];
}
function quoted(text, from) {
  let value = "";
  let at = from + 1;
  for (; ; ) {
    const end2 = text.indexOf('"', at);
    if (end2 < 0) throw new Error(`The quote in line ${text.slice(0, from).split("\n").length} is never closed.`);
    value += text.slice(at, end2);
    if (text[end2 + 1] !== '"') return [value, end2 + 1];
    value += '"';
    at = end2 + 2;
  }
}

// src/tables/import.tsx
var BATCH_ROWS = 2e3;
var BATCH_LENGTH = 2e6;
function ImportDialog({ view, onClose }) {
  const file = useSignal(null);
  const problem = useSignal(null);
  const done = useSignal(null);
  const cancelled = T2(false);
  const cancel2 = () => {
    if (done.value === null) onClose();
    else cancelled.current = true;
  };
  const choose = async (chosen2) => {
    problem.value = null;
    file.value = null;
    if (!chosen2) return;
    try {
      file.value = { name: chosen2.name, ...readFile(view, await chosen2.text()) };
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  const run2 = async () => {
    const { columns, rows } = file.value;
    done.value = 0;
    problem.value = null;
    cancelled.current = false;
    try {
      for (const batch of batches(rows)) {
        if (cancelled.current) throw new DOMException("", "AbortError");
        await insertBatch(view, columns, batch);
        done.value += batch.length;
      }
      sayDone(`${countOf(rows.length, "row")} ${rows.length === 1 ? "was" : "were"} imported.`);
      onClose();
    } catch (error) {
      const kept = done.value ?? 0;
      problem.value = `${sentence(error)} ${kept === 0 ? "Nothing was imported." : `The first ${kept.toLocaleString("en")} rows were imported; take them out of the file before the next try.`}`;
      file.value = { ...file.value, rows: rows.slice(kept) };
      done.value = null;
    }
    view.refreshSoon();
  };
  return /* @__PURE__ */ a4(Dialog, { title: `Import into ${view.table.entry.name}`, onClose: cancel2, children: [
    /* @__PURE__ */ a4("p", { children: "A CSV file whose first line names columns of the table. Empty fields are NULL; columns that the file lacks get their defaults." }),
    /* @__PURE__ */ a4("input", { type: "file", accept: ".csv,text/csv", "aria-label": "CSV file", onChange: (event) => void choose(event.currentTarget.files?.[0]) }),
    problem.value && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem.value }),
    file.value && /* @__PURE__ */ a4("p", { role: "status", children: [
      countOf(file.value.rows.length, "row"),
      ", columns ",
      file.value.columns.map(({ name }) => name).join(", "),
      "."
    ] }),
    done.value !== null && file.value && /* @__PURE__ */ a4("progress", { "aria-label": "Imported rows", max: file.value.rows.length, value: done.value }),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: cancel2, children: "Cancel" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "primary", disabled: !file.value || done.value !== null, onClick: () => void run2(), children: "Import" })
    ] })
  ] });
}
function readFile(view, text) {
  const [header, ...rows] = parseCsv(text);
  if (!header) throw new Error("The file is empty.");
  const columns = header.map((name) => {
    const column3 = view.table.columns.find((column4) => column4.name === name);
    if (!column3) throw new Error(`The table has no column ${name ?? "(empty)"}; the first line must name columns.`);
    if (column3.generated) throw new Error(`The database makes the values of ${column3.name}; take this column out of the file.`);
    return column3;
  });
  const wrong = rows.findIndex((row) => row.length !== columns.length);
  if (wrong >= 0) throw new Error(`Row ${wrong + 1} has ${rows[wrong].length} fields, the first line has ${columns.length}.`);
  return { columns, rows };
}
function* batches(rows) {
  let batch = [];
  let length = 0;
  for (const row of rows) {
    const size = row.reduce((sum2, field) => sum2 + (field?.length ?? 0) + 12, 0);
    if (batch.length > 0 && (batch.length >= BATCH_ROWS || length + size > BATCH_LENGTH)) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(row);
    length += size;
  }
  if (batch.length > 0) yield batch;
}
async function insertBatch(view, columns, rows) {
  const names = columns.map((_column, index) => `v${index}`);
  const params = rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])));
  const values2 = columns.map((column3, index) => castTo(`v${index}`, column3)).join(", ");
  await sql({
    q: `insert into ${view.table.sqlName} (${columns.map(({ name }) => ident(name)).join(", ")}) values (${values2})`,
    params,
    type_hints: Object.fromEntries(names.map((name) => [name, "text"]))
  });
}

// src/catalog/shown.ts
var SHOWN2 = 240;
var SHORT = /* @__PURE__ */ new Set([
  "bool",
  "int2",
  "int4",
  "int8",
  "oid",
  "float4",
  "float8",
  "money",
  "uuid",
  "date",
  "time",
  "timetz",
  "timestamp",
  "timestamptz",
  "interval",
  "inet",
  "cidr",
  "macaddr"
]);
var NUMBERS = /* @__PURE__ */ new Set(["int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"]);
var ALIASES = [
  [/^timestamp with time zone/, "timestamptz"],
  [/^timestamp without time zone/, "timestamp"],
  [/^time with time zone/, "timetz"],
  [/^time without time zone/, "time"],
  [/^character varying/, "varchar"],
  [/^character\b/, "char"],
  [/^double precision/, "float8"]
];
var typeName = (column3) => shortened(column3.cast);
var fullTypeName = (column3) => shortened(column3.type);
var shortened = (type) => ALIASES.reduce((name, [long, short2]) => name.replace(long, short2), type);
var isNumber = (column3) => NUMBERS.has(column3.typname);
var isShort = (column3) => SHORT.has(column3.typname) || column3.labels !== null;
function shownExpression(column3) {
  const name = ident(column3.name);
  if (isShort(column3)) return `${name}::text`;
  if (column3.typname === "bytea") return `'\\x' || encode(substring(${name} for ${SHOWN2 / 2}), 'hex')`;
  return `left(${name}::text, ${SHOWN2 + 1})`;
}
var isCut = (column3, text) => column3.typname === "bytea" ? text.length >= SHOWN2 + 2 : !isShort(column3) && text.length > SHOWN2;

// src/tables/insert.tsx
function InsertDialog({ view, onClose }) {
  const { table: table2 } = view;
  const columns = table2.columns.filter((column3) => column3.insertable && !column3.generated);
  const given = useSignal(/* @__PURE__ */ new Map());
  const problem = useSignal(null);
  const set = (column3, next) => given.value = new Map(given.value).set(column3, next);
  const save = async (event) => {
    event.preventDefault();
    const values2 = new Map([...given.value].filter(([, { how }]) => how !== "default").map(([column3, { how, text }]) => [column3, how === "null" ? null : text]));
    view.noteInsert();
    try {
      await insertRow(table2, values2);
      sayDone("The row was inserted.");
      view.refreshSoon();
      onClose();
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  return /* @__PURE__ */ a4(Dialog, { title: `New row in ${table2.entry.name}`, onClose, wide: true, children: /* @__PURE__ */ a4("form", { class: "fields", onSubmit: save, children: [
    problem.value && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem.value }),
    columns.map((column3) => /* @__PURE__ */ a4(Field, { column: column3, given: given.value.get(column3) ?? { how: "default", text: "" }, onChange: (next) => set(column3, next) }, column3.name)),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: "Cancel" }),
      /* @__PURE__ */ a4("button", { type: "submit", class: "primary", children: "Insert" })
    ] })
  ] }) });
}
function Field({ column: column3, given, onChange }) {
  const rest = column3.identity ? "by the database" : column3.default_value ?? (column3.not_null ? "" : "NULL");
  const choices = column3.typname === "bool" ? ["true", "false"] : column3.labels;
  const required = rest === "";
  const shared = { value: given.text, "aria-label": column3.name };
  return /* @__PURE__ */ a4("div", { class: "field", children: [
    /* @__PURE__ */ a4("span", { class: "field-name", children: [
      column3.name,
      " ",
      /* @__PURE__ */ a4("small", { children: [
        fullTypeName(column3),
        required && " · required"
      ] })
    ] }),
    choices ? /* @__PURE__ */ a4("select", { ...shared, onChange: ({ currentTarget: { value } }) => onChange({ how: value ? "value" : "default", text: value }), children: [
      /* @__PURE__ */ a4("option", { value: "", children: rest || "choose" }),
      choices.map((choice) => /* @__PURE__ */ a4("option", { value: choice, children: choice }, choice))
    ] }) : /* @__PURE__ */ a4(
      "input",
      {
        ...shared,
        placeholder: given.how === "null" ? "NULL" : rest,
        spellcheck: false,
        autocomplete: "off",
        onInput: ({ currentTarget: { value } }) => onChange({ how: value === "" ? "default" : "value", text: value })
      }
    ),
    /* @__PURE__ */ a4(
      "select",
      {
        "aria-label": `How ${column3.name} is filled`,
        value: given.how,
        onChange: ({ currentTarget: { value } }) => onChange({ how: value, text: value === "value" ? given.text : "" }),
        children: [
          /* @__PURE__ */ a4("option", { value: "default", children: required ? "not given" : rest === "NULL" ? "NULL" : "default" }),
          /* @__PURE__ */ a4("option", { value: "value", children: "value" }),
          !column3.not_null && rest !== "NULL" && /* @__PURE__ */ a4("option", { value: "null", children: "NULL" })
        ]
      }
    )
  ] });
}

// src/tables/list.tsx
function TableList() {
  const search = useSignal("");
  const all2 = tables.value;
  const wanted = search.value.toLowerCase();
  const found = (all2 ?? []).filter(({ schema, name }) => `${schema}.${name}`.toLowerCase().includes(wanted));
  const schemas = [...new Set(found.map(({ schema }) => schema))];
  return /* @__PURE__ */ a4("nav", { class: "tables", "aria-label": "Tables", children: [
    /* @__PURE__ */ a4("input", { type: "search", placeholder: "Find a table", "aria-label": "Find a table", value: search.value, onInput: (event) => search.value = event.currentTarget.value }),
    !all2 && /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the catalog…" }),
    all2 && found.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: wanted ? "No table has this in its name." : "There is no table that you may use." }),
    schemas.map((schema) => /* @__PURE__ */ a4("section", { "aria-label": `Schema ${schema}`, children: [
      /* @__PURE__ */ a4("h2", { children: schema }),
      /* @__PURE__ */ a4("ul", { children: found.filter((table2) => table2.schema === schema).map((table2) => /* @__PURE__ */ a4(Item, { table: table2 }, table2.name)) })
    ] }, schema))
  ] });
}
function Item({ table: table2 }) {
  const { schema, name, kind } = table2;
  const rows = rowsOf(table2);
  const current = route.value.area === "tables" && route.value.schema === schema && route.value.table === name;
  return /* @__PURE__ */ a4("li", { children: /* @__PURE__ */ a4("a", { href: hrefOf({ area: "tables", schema, table: name }), "aria-current": current ? "page" : void 0, title: table2.comment ?? KINDS[kind], children: [
    /* @__PURE__ */ a4("span", { class: `kind kind-${kind}`, "aria-hidden": "true" }),
    /* @__PURE__ */ a4("span", { class: "name", dir: "auto", children: name }),
    kind !== "r" && /* @__PURE__ */ a4("small", { class: "sr", children: KINDS[kind] }),
    rows !== null && /* @__PURE__ */ a4("small", { title: "Rows, at least by PostgreSQL's estimate", children: compact(rows) })
  ] }) });
}
var compact = (count2) => new Intl.NumberFormat("en", { notation: "compact" }).format(count2);

// src/tables/overview.tsx
var FIRST_TABLE = `create table messages (
  id bigint generated always as identity primary key,
  body text not null,
  sent_at timestamptz not null default now()
)`;
function Overview() {
  const all2 = tables.value;
  if (!all2) return /* @__PURE__ */ a4("div", { class: "empty", children: [
    /* @__PURE__ */ a4("h1", { children: "Tables" }),
    /* @__PURE__ */ a4("p", { children: "Reading the catalog…" })
  ] });
  if (all2.length === 0) return /* @__PURE__ */ a4(NoTables, {});
  const commented = all2.some(({ comment }) => comment !== null);
  return /* @__PURE__ */ a4("div", { class: "sheet overview", role: "region", tabIndex: 0, "aria-label": "Overview", children: [
    /* @__PURE__ */ a4("h1", { children: claims.value?.database }),
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      all2.length === 1 ? "One table" : `${all2.length} tables`,
      " that you may use. Rows are edited in place, and every committed change appears beside them."
    ] }),
    /* @__PURE__ */ a4("div", { class: "scroll-x panel", tabIndex: 0, role: "region", "aria-label": "All tables", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Kind" }),
        /* @__PURE__ */ a4("th", { scope: "col", class: "number", children: "Rows" }),
        commented && /* @__PURE__ */ a4("th", { scope: "col", children: "Comment" })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: all2.map((table2) => /* @__PURE__ */ a4(Row2, { table: table2, commented }, `${table2.schema}.${table2.name}`)) })
    ] }) }),
    /* @__PURE__ */ a4(Addresses, { schemas: [...new Set(all2.map(({ schema }) => schema))] })
  ] });
}
function Row2({ table: table2, commented }) {
  const { schema, name, kind, comment } = table2;
  const rows = rowsOf(table2);
  return /* @__PURE__ */ a4("tr", { children: [
    /* @__PURE__ */ a4("th", { scope: "row", dir: "auto", children: /* @__PURE__ */ a4("a", { href: hrefOf({ area: "tables", schema, table: name }), children: schema === "public" ? name : `${schema}.${name}` }) }),
    /* @__PURE__ */ a4("td", { children: KINDS[kind] }),
    /* @__PURE__ */ a4("td", { class: "number", children: rows === null ? "–" : compact(rows) }),
    commented && /* @__PURE__ */ a4("td", { children: comment })
  ] });
}
var GUIDES = [["React", "react"], ["Python", "python"], ["curl", "curl"], ["Row level security", "row-level-security"]];
function Addresses({ schemas }) {
  return /* @__PURE__ */ a4("section", { class: "card addresses", "aria-labelledby": "addresses", children: [
    /* @__PURE__ */ a4("h2", { id: "addresses", children: "Use it from an application" }),
    /* @__PURE__ */ a4("dl", { children: [
      schemas.map((schema) => /* @__PURE__ */ a4(Address, { name: schemas.length > 1 ? `GraphQL of ${schema}` : "GraphQL", path: `/api/graphql/schema/${encodeURIComponent(schema)}` }, schema)),
      /* @__PURE__ */ a4(Address, { name: "SQL", path: "/api/v4/sql" }),
      /* @__PURE__ */ a4(Address, { name: "Live changes", path: "/api/v4/events" })
    ] }),
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      "Guides: ",
      GUIDES.map(([title, name], index) => /* @__PURE__ */ a4($, { children: [
        index > 0 && ", ",
        /* @__PURE__ */ a4("a", { href: `${home}/docs/how-to/${name}`, target: "_blank", rel: "noopener", children: title })
      ] }))
    ] })
  ] });
}
var Address = ({ name, path }) => /* @__PURE__ */ a4($, { children: [
  /* @__PURE__ */ a4("dt", { children: name }),
  /* @__PURE__ */ a4("dd", { children: /* @__PURE__ */ a4("code", { children: [
    home,
    path
  ] }) })
] });
function NoTables() {
  const write2 = () => {
    replace("sql", FIRST_TABLE);
    goTo({ area: "query" });
  };
  if (isMember.value) {
    return /* @__PURE__ */ a4("div", { class: "empty", children: [
      /* @__PURE__ */ a4("h1", { children: [
        userName(claims.value),
        " is a member"
      ] }),
      /* @__PURE__ */ a4("p", { children: "The service gives members GraphQL, methods and live changes, but no SQL, with which this page reads tables." }),
      /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => goTo({ area: "query" }), children: "Ask with GraphQL" }) })
    ] });
  }
  if (!claims.value?.superUser) {
    return /* @__PURE__ */ a4("div", { class: "empty", children: [
      /* @__PURE__ */ a4("h1", { children: "No table for you yet" }),
      /* @__PURE__ */ a4("p", { children: [
        "You have no rights on a table of this database. Its owner, ",
        claims.value?.database,
        ", can grant them."
      ] })
    ] });
  }
  return /* @__PURE__ */ a4("div", { class: "empty", children: [
    /* @__PURE__ */ a4("h1", { children: "No table yet" }),
    /* @__PURE__ */ a4("p", { children: "Create the first one with SQL. It has an API and live changes at once." }),
    /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: write2, children: "Write CREATE TABLE" }) })
  ] });
}

// src/tables/cell_editor.tsx
function CellEditor({ column: column3, value, typed, onSave, onCancel }) {
  const field = T2(null);
  const [text, setText] = d2(typed ?? value ?? "");
  const done = T2(false);
  F2(() => {
    field.current?.focus();
    if (typed === void 0) field.current?.select?.();
  }, []);
  const finish = (action) => {
    if (done.current) return;
    done.current = true;
    action();
  };
  const onKeyDown = (event) => {
    event.stopPropagation();
    if (event.key === "Enter") finish(() => onSave(text, "down"));
    else if (event.key === "Tab") finish(() => onSave(text, "right"));
    else if (event.key === "Escape") finish(onCancel);
    else if (event.key === "0" && event.ctrlKey && !column3.not_null) finish(() => onSave(null, "stay"));
    else return;
    event.preventDefault();
  };
  const onBlur = () => finish(() => text === (value ?? "") ? onCancel() : onSave(text, "stay"));
  const choices = column3.typname === "bool" ? ["true", "false"] : column3.labels;
  const shared = { ref: field, class: "cell-editor", "aria-label": column3.name, onKeyDown, onBlur };
  if (choices) {
    return /* @__PURE__ */ a4("select", { ...shared, value: text, onChange: (event) => setText(event.currentTarget.value), children: [
      value === null && /* @__PURE__ */ a4("option", { value: "", children: "NULL" }),
      choices.map((choice) => /* @__PURE__ */ a4("option", { value: choice, children: choice }, choice))
    ] });
  }
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("input", { ...shared, value: text, spellcheck: false, autocomplete: "off", onInput: (event) => setText(event.currentTarget.value) }),
    !column3.not_null && value !== null && /* @__PURE__ */ a4(
      "button",
      {
        type: "button",
        class: "set-null",
        tabIndex: -1,
        title: "Ctrl+0",
        onPointerDown: (event) => {
          event.preventDefault();
          finish(() => onSave(null, "stay"));
        },
        children: "NULL"
      }
    )
  ] });
}

// src/tables/conflict.tsx
function ConflictDialog({ column: column3, mine, theirs, onOverwrite, onClose }) {
  const gone = theirs === void 0;
  return /* @__PURE__ */ a4(Dialog, { title: gone ? "This row was deleted" : "This value was changed by somebody else", onClose, children: [
    /* @__PURE__ */ a4("p", { children: gone ? "Somebody has deleted the row, or you may no longer see it. Nothing was written." : `While you edited ${column3}, somebody else saved another value. Nothing was written yet.` }),
    /* @__PURE__ */ a4("dl", { class: "compare", children: [
      /* @__PURE__ */ a4("dt", { children: "Yours" }),
      /* @__PURE__ */ a4("dd", { children: /* @__PURE__ */ a4("pre", { tabIndex: 0, "aria-label": "Your value", children: mine ?? "NULL" }) }),
      !gone && /* @__PURE__ */ a4($, { children: [
        /* @__PURE__ */ a4("dt", { children: "In the database" }),
        /* @__PURE__ */ a4("dd", { children: /* @__PURE__ */ a4("pre", { tabIndex: 0, "aria-label": "Value in the database", children: theirs ?? "NULL" }) })
      ] })
    ] }),
    /* @__PURE__ */ a4("footer", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: onClose, children: gone ? "Close" : "Keep theirs" }),
      !gone && /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: onOverwrite, children: "Write mine" })
    ] })
  ] });
}

// src/tables/grid_columns.tsx
var SAMPLE = 40;
var NARROWEST = 70;
var WIDEST = 340;
var CHARACTER = 7.8;
var KEY_MARK = 20;
var LINK = 34;
var phone = matchMedia("(max-width: 720px)");
function gridColumns(view) {
  const { table: table2 } = view;
  return table2.columns.map((column3, index) => {
    const order = view.order.value.find((term) => term.column === column3.name);
    const isKey = table2.key.includes(column3);
    const isLink = table2.foreignKeys.some(({ columns }) => columns.includes(column3.name));
    return {
      name: column3.name,
      title: [column3.name, column3.type, isKey && "key", column3.not_null && "not null", column3.comment].filter(Boolean).join(" · "),
      width: widthOf(view, column3, index, isKey ? KEY_MARK : 0, isLink ? LINK : 0),
      numeric: isNumber(column3),
      header: /* @__PURE__ */ a4($, { children: [
        isKey && /* @__PURE__ */ a4("span", { class: "key", "aria-hidden": "true", children: "◆ " }),
        column3.name,
        " ",
        /* @__PURE__ */ a4("small", { children: typeName(column3) })
      ] }),
      sort: order && (order.descending ? "descending" : "ascending")
    };
  });
}
function widthOf(view, column3, index, mark, link) {
  let longest = 0;
  for (let at = 0; at < SAMPLE; at += 1) {
    const text = view.rows.value.row(at)?.cells[index];
    longest = Math.max(longest, text?.length ?? 4);
  }
  const type = phone.matches ? 0 : 0.8 * typeName(column3).length;
  const header = (column3.name.length + type + 3) * CHARACTER + 20 + mark;
  return Math.round(Math.min(WIDEST, Math.max(NARROWEST, longest * CHARACTER + 24 + link, Math.min(220, header))));
}

// src/tables/rows.ts
var FAR = 5e4;
var CELLS_PER_PAGE = 12e3;
var EXACT_COUNT_LIMIT = 1e5;
var keyText = (key) => JSON.stringify(key);
var Rows2 = class {
  constructor(table2, filters, order) {
    this.table = table2;
    this.filters = filters;
    this.order = order;
    this.pageSize = Math.max(20, Math.min(200, Math.floor(CELLS_PER_PAGE / Math.max(1, table2.columns.length))));
    void this.count();
  }
  /** Changes whenever there is something new to draw. */
  version = y3(0);
  total = y3(null);
  problem = y3(null);
  pages = /* @__PURE__ */ new Map();
  stale = /* @__PURE__ */ new Set();
  /** Pages whose place is a guess, which tell nothing about the end. */
  guessed = /* @__PURE__ */ new Set();
  reading = /* @__PURE__ */ new Map();
  counting = null;
  pageSize;
  row(index) {
    return this.pages.get(Math.floor(index / this.pageSize))?.[index % this.pageSize];
  }
  /** The place of the row with this key, if it was read. */
  indexOf(key) {
    for (const [page, rows] of this.pages) {
      const index = rows.findIndex((row) => row && keyText(row.key) === key);
      if (index >= 0) return page * this.pageSize + index;
    }
    return void 0;
  }
  /** Reads what a range of rows needs and gives up what is being read elsewhere. */
  need(from, to) {
    const first = Math.max(0, Math.floor(from / this.pageSize));
    const last = Math.max(first, Math.floor(Math.max(from, to - 1) / this.pageSize));
    for (const [page, controller] of this.reading) {
      if (page < first - 1 || page > last + 1) controller.abort();
    }
    for (let page = first; page <= last; page += 1) {
      const known = this.pages.has(page) && !this.stale.has(page);
      const waits = this.isFar(page) && (this.reading.has(page - 1) || this.reading.has(page + 1));
      if (!known && !waits && !this.reading.has(page)) void this.read(page);
    }
    this.forget(first, last);
  }
  /** Whether the place of a page cannot be told by counting from the beginning. */
  isFar(page) {
    const total = this.total.value;
    const countable = !total || total.exact || this.filters.length > 0 || this.order.length > 0;
    return !countable && page * this.pageSize >= FAR;
  }
  /** Pages far from what is looked at are dropped, so that memory stays small. */
  forget(first, last) {
    if (this.pages.size < 60) return;
    for (const page of this.pages.keys()) {
      if (page < first - 20 || page > last + 20) this.pages.delete(page);
    }
  }
  /** Shows what there is until newer rows arrive. */
  refresh() {
    for (const page of this.pages.keys()) this.stale.add(page);
    for (const controller of this.reading.values()) controller.abort();
    this.version.value += 1;
    void this.count();
  }
  dispose() {
    for (const controller of this.reading.values()) controller.abort();
    this.counting?.abort();
  }
  async read(page) {
    const controller = new AbortController();
    this.reading.set(page, controller);
    try {
      const rows = await this.fetch(page, controller.signal);
      this.pages.set(page, rows);
      this.stale.delete(page);
      this.problem.value = null;
      if (!this.guessed.has(page)) this.learnEnd(page, rows.length);
    } catch (error) {
      if (!isAbort(error)) this.problem.value = error;
    } finally {
      if (this.reading.get(page) === controller) this.reading.delete(page);
      this.version.value += 1;
    }
  }
  async fetch(page, abort) {
    const { table: table2 } = this;
    const params = {};
    const parts = conditions(table2, this.filters, params);
    const way = this.way(page, params);
    if (way.condition) parts.push(way.condition);
    const terms = orderTerms(table2, this.order);
    const q2 = `select ${this.selectList()} from ${table2.sqlName}${where(parts)}${orderBy(terms, way.backwards)} limit ${way.limit ?? this.pageSize}${way.offset ? ` offset ${way.offset}` : ""}`;
    const { data } = await sql(statement(q2, params), abort);
    const rows = data.map((row) => this.rowOf(row));
    if (way.guessed) this.guessed.add(page);
    else this.guessed.delete(page);
    if (!way.backwards) return rows;
    const missing = Array((way.limit ?? this.pageSize) - rows.length);
    return [...missing, ...rows.reverse()];
  }
  /**
   * How a page is read. An offset makes PostgreSQL count past all rows before it; a condition on the
   * key next to a page that is known does not. A far jump in a table whose size is an estimate goes to
   * the end, or to a share of the key's range, where the key is a number.
   */
  way(page, params) {
    const offset = page * this.pageSize;
    const { key } = this.table;
    if (key.length === 0 || this.order.length > 0 || page === 0) return { offset };
    const beside = this.seek(page, params);
    if (beside) return beside;
    const total = this.total.value;
    if (!total || !this.isFar(page)) return { offset };
    const first = this.pages.get(page)?.[0];
    if (first) return { condition: this.beyond(first, ">=", params), guessed: true };
    const left = total.count - offset;
    if (left <= this.pageSize) return { backwards: true, limit: Math.max(1, left), guessed: true };
    const [only] = key;
    if (key.length > 1 || !/^int[248]$/.test(only.typname)) return { offset };
    params.share = String(offset / total.count);
    const name = ident(only.name);
    const range = `select min(${name}) + ((max(${name})::numeric - min(${name})) * cast(:share as numeric))::int8 from ${this.table.sqlName}`;
    return { condition: `${name} >= (${range})`, guessed: true };
  }
  seek(page, params) {
    const usable = (neighbour) => this.stale.has(neighbour) ? void 0 : this.pages.get(neighbour);
    const before2 = usable(page - 1);
    const edge = before2?.length === this.pageSize ? before2.at(-1) : usable(page + 1)?.[0];
    if (!edge) return null;
    const behind = edge === before2?.at(-1);
    return { condition: this.beyond(edge, behind ? ">" : "<", params), backwards: !behind };
  }
  /** A comparison of the key with that of a row. */
  beyond(edge, operator, params) {
    const { key } = this.table;
    key.forEach((_column, index) => params[`k${index}`] = edge.key[index] ?? null);
    const columns = key.map(({ name }) => ident(name)).join(", ");
    const values2 = key.map((column3, index) => castTo(`k${index}`, column3)).join(", ");
    return `(${columns}) ${operator} (${values2})`;
  }
  selectList() {
    const { columns, key } = this.table;
    const cells = columns.map((column3, index) => `${shownExpression(column3)} as c${index}`);
    return [...cells, ...key.map(({ name }, index) => `${ident(name)}::text as k${index}`)].join(", ") || "null as c0";
  }
  rowOf(row) {
    return {
      cells: this.table.columns.map((_column, index) => row[`c${index}`]),
      key: this.table.key.map((_column, index) => row[`k${index}`])
    };
  }
  /** A page that is not full is the last one. */
  learnEnd(page, length) {
    const end2 = page * this.pageSize + length;
    const { count: count2, exact } = this.total.value ?? { count: 0, exact: false };
    if (length < this.pageSize && (length > 0 || page === 0)) this.total.value = { count: end2, exact: this.guessed.size === 0 };
    else if (length === 0 && !exact) void this.count(true);
    else if (end2 >= count2) this.total.value = { count: end2 + this.pageSize, exact: false };
  }
  /** Small tables and filtered ones are counted up to a limit; large ones keep PostgreSQL's estimate. */
  async count(exactly = false) {
    this.counting?.abort();
    const controller = new AbortController();
    this.counting = controller;
    const { table: table2, filters } = this;
    const { estimate } = table2.entry;
    if (!exactly && filters.length === 0 && estimate > EXACT_COUNT_LIMIT) {
      this.total.value ??= { count: Math.round(estimate), exact: false };
      return;
    }
    const params = {};
    const inner = `select 1 from ${table2.sqlName}${where(conditions(table2, filters, params))}`;
    const limit = exactly ? "" : ` limit ${EXACT_COUNT_LIMIT + 1}`;
    try {
      const { data } = await sql(statement(`select count(*)::float8 as n from (${inner}${limit}) counted`, params), controller.signal);
      const count2 = Number(data[0]?.n ?? 0);
      this.total.value = { count: count2, exact: exactly || count2 <= EXACT_COUNT_LIMIT };
    } catch (error) {
      if (!isAbort(error)) this.problem.value = error;
    }
  }
};

// src/tables/value.tsx
var EDITABLE = 2e6;
function ValueDialog({ table: table2, row, column: column3, shown: shown2, editable, onSave, onClose }) {
  const whole = useSignal(shown2 !== null && isCut(column3, shown2) ? void 0 : shown2);
  const text = useSignal(whole.value ?? "");
  const saving = useSignal(false);
  A2(() => {
    if (whole.value !== void 0 || table2.key.length === 0) return;
    readValue(table2, row, column3).then((value2) => {
      whole.value = value2 ?? null;
      text.value = value2 ?? "";
    }).catch((error) => {
      sayError(error);
      onClose();
    });
  }, []);
  const value = whole.value;
  const tooLong = (value?.length ?? 0) > EDITABLE;
  const mayWrite = editable && value !== void 0 && !tooLong;
  const save = async (next) => {
    saving.value = true;
    if (await onSave(next, value ?? null)) onClose();
    saving.value = false;
  };
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([value ?? ""]));
    link.download = `${column3.name}.txt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return /* @__PURE__ */ a4(Dialog, { title: column3.name, onClose, wide: true, children: [
    /* @__PURE__ */ a4("p", { class: "hint", children: [
      column3.type,
      value !== void 0 && `, ${value === null ? "NULL" : countOf(value.length, "character")}`,
      !editable && (table2.key.length === 0 ? " · read-only: the table has no key" : " · read-only")
    ] }),
    value === void 0 ? /* @__PURE__ */ a4("p", { children: table2.key.length === 0 ? "This table has no key, so the row cannot be read again. The beginning of the value is shown." : "Reading the value…" }) : /* @__PURE__ */ a4(
      "textarea",
      {
        "aria-label": column3.name,
        rows: 16,
        spellcheck: false,
        readOnly: !mayWrite,
        value: tooLong ? `${value?.slice(0, EDITABLE)}…` : text.value,
        onInput: (event) => text.value = event.currentTarget.value
      }
    ),
    value === void 0 && table2.key.length === 0 && /* @__PURE__ */ a4("pre", { tabIndex: 0, children: shown2 }),
    tooLong && /* @__PURE__ */ a4("p", { class: "hint", children: "The value is too long to be edited here. Download it." }),
    /* @__PURE__ */ a4("footer", { children: [
      typeof value === "string" && /* @__PURE__ */ a4("button", { type: "button", onClick: download, children: "Download" }),
      mayWrite && !column3.not_null && value !== null && /* @__PURE__ */ a4("button", { type: "button", disabled: saving.value, onClick: () => save(null), children: "Set NULL" }),
      mayWrite && /* @__PURE__ */ a4("button", { type: "button", class: "primary", disabled: saving.value, onClick: () => save(text.value), children: "Save" })
    ] })
  ] });
}

// src/tables/row_grid.tsx
function RowGrid({ view, onDelete }) {
  const { table: table2 } = view;
  const rows = view.rows.value;
  const editing = useSignal(null);
  const opened2 = useSignal(null);
  const conflict = useSignal(null);
  A2(() => withdrawActions, []);
  void rows.version.value;
  const sampled = rows.row(0) !== void 0;
  const columns = w2(() => gridColumns(view), [table2, view.order.value, sampled]);
  const links = w2(() => linkedColumns(table2.foreignKeys), [table2]);
  const cell = (at, index) => {
    const row = rows.row(at);
    const column3 = table2.columns[index];
    if (!row || !column3) return void 0;
    const text = row.cells[index] ?? null;
    if (text === null) return { text: "NULL", className: "null" };
    const link = links.get(column3.name);
    const shown3 = isCut(column3, text) ? `${text.slice(0, 200)}…` : text;
    return {
      text: link ? /* @__PURE__ */ a4(LinkedValue, { text: shown3, link, row: row.cells, view }) : shown3,
      tip: text.length > 20 ? shown3 : void 0
    };
  };
  const open = (place, typed) => {
    const row = rows.row(place.row);
    const column3 = table2.columns[place.column];
    if (!row || !column3) return;
    view.active.value = place;
    const value = row.cells[place.column] ?? null;
    const text = value ?? "";
    const long = isCut(column3, text) || /[\n\r]/.test(text) || column3.category === "U" && text.length > 40;
    const kind = long || !mayEdit(view, column3) ? opened2 : editing;
    kind.value = { place, key: row.key, value, typed };
  };
  const copy = (place) => {
    const value = rows.row(place.row)?.cells[place.column];
    const column3 = table2.columns[place.column];
    if (value == null || !column3) return;
    if (isCut(column3, value)) sayError(new Error("Only the beginning of this value is here. Open it with Enter to copy it."));
    else void copyText(value);
  };
  const save = async (key, column3, value, was, again) => {
    view.noteSent(key, was === void 0 ? void 0 : { name: column3.name, was, value });
    try {
      await writeValue(table2, key, column3, { value, was });
      view.refreshSoon();
      return true;
    } catch (error) {
      view.forgetSent(key);
      if (error instanceof Conflict) conflict.value = { key, column: column3, value, conflict: error };
      else sayError(error, again);
      return false;
    }
  };
  const editAgain = (key, column3, typed) => {
    const at = view.rows.value.indexOf(keyText(key));
    if (at === void 0) return sayError(new Error(`The row is no longer there. You typed: ${typed}`));
    open({ row: at, column: column3 }, typed);
  };
  const onSave = (value, then) => {
    const edited = editing.value;
    const column3 = edited && table2.columns[edited.place.column];
    editing.value = null;
    focusGrid();
    if (!edited || !column3) return;
    const { key, place, value: was } = edited;
    const at = rows.indexOf(keyText(key));
    const row = at === void 0 ? void 0 : rows.row(at);
    const next = column3.typname !== "text" && value === "" && was === null ? null : value;
    if (next !== was) {
      const shown3 = row?.cells[place.column] ?? null;
      if (row) row.cells[place.column] = next;
      const again = next === null ? void 0 : { label: "Edit again", run: () => editAgain(key, place.column, next) };
      void save(key, column3, next, was, again).then((written) => {
        if (!written && row) {
          row.cells[place.column] = shown3;
          rows.version.value += 1;
        }
      });
    }
    const active = at ?? place.row;
    if (then === "down") view.active.value = { row: Math.min(active + 1, (rows.total.value?.count ?? 1) - 1), column: place.column };
    if (then === "right") view.active.value = { row: active, column: Math.min(place.column + 1, table2.columns.length - 1) };
  };
  const editor = editing.value && /* @__PURE__ */ a4(
    CellEditor,
    {
      column: table2.columns[editing.value.place.column],
      value: editing.value.value,
      typed: editing.value.typed,
      onSave,
      onCancel: () => {
        editing.value = null;
        focusGrid();
      }
    }
  );
  const shown2 = opened2.value;
  const shownColumn = shown2 && table2.columns[shown2.place.column];
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(
      Grid,
      {
        label: `Rows of ${table2.entry.name}`,
        columns,
        rows: rows.total.value?.count ?? 0,
        cell,
        rowClass: (at) => flashClass(view, rows.row(at)?.key),
        onView: (from, to) => rows.need(from, to),
        active: view.active.value,
        onActive: (place) => view.active.value = place,
        onOpen: open,
        onHeader: (column3, add) => sortBy(view, column3, add),
        onCopy: copy,
        editor,
        onKey: (event) => {
          if (event.key === "Delete") onDelete();
          if (event.key === "Enter" && event.ctrlKey) follow(view);
        }
      }
    ),
    shown2 && shownColumn && /* @__PURE__ */ a4(
      ValueDialog,
      {
        table: table2,
        row: shown2.key,
        column: shownColumn,
        shown: shown2.value,
        editable: mayEdit(view, shownColumn),
        onSave: (value, was) => save(shown2.key, shownColumn, value, was),
        onClose: () => opened2.value = null
      }
    ),
    conflict.value && /* @__PURE__ */ a4(
      ConflictDialog,
      {
        mine: conflict.value.value,
        theirs: conflict.value.conflict.theirs,
        column: conflict.value.column.name,
        onOverwrite: () => {
          const { key, column: column3, value } = conflict.value;
          conflict.value = null;
          void save(key, column3, value);
        },
        onClose: () => {
          conflict.value = null;
          view.refreshSoon();
        }
      }
    )
  ] });
}
var focusGrid = () => document.querySelector(".table-rows .grid")?.focus();
var mayEdit = (view, column3) => view.table.key.length > 0 && view.table.canUpdate && column3.updatable && !column3.generated;
function linkedColumns(keys) {
  return new Map(keys.flatMap((key) => key.columns.map((column3) => [column3, key])));
}
function flashClass(view, key) {
  const op = key && view.flashing.value.get(keyText(key));
  return op ? `flash-${op}` : void 0;
}
function sortBy(view, index, add) {
  const name = view.table.columns[index]?.name;
  if (!name) return;
  const old = view.order.value.find(({ column: column3 }) => column3 === name);
  const others = add ? view.order.value.filter(({ column: column3 }) => column3 !== name) : [];
  const next = !old ? [{ column: name, descending: false }] : old.descending ? [] : [{ column: name, descending: true }];
  view.arrange(view.filters.value, [...others, ...next]);
}
function openReferenced(view, link, cells) {
  const filters = link.columns.map((name, index) => ({
    column: link.referenced[index],
    operator: "=",
    value: cells[view.table.columns.findIndex((column3) => column3.name === name)] ?? ""
  }));
  goTo({ area: "tables", schema: link.schema, table: link.table, filters });
}
function follow(view) {
  const place = view.active.value;
  const row = place && view.rows.value.row(place.row);
  const link = place && linkedColumns(view.table.foreignKeys).get(view.table.columns[place.column]?.name ?? "");
  if (row && link) openReferenced(view, link, row.cells);
}
function LinkedValue({ text, link, row, view }) {
  return /* @__PURE__ */ a4($, { children: [
    text,
    /* @__PURE__ */ a4(
      "button",
      {
        type: "button",
        class: "follow",
        tabIndex: -1,
        "aria-label": `Open ${text} in ${link.table}`,
        title: `Open in ${link.table} (Ctrl+Enter)`,
        onClick: (event) => {
          event.stopPropagation();
          openReferenced(view, link, row);
        },
        children: "↗"
      }
    )
  ] });
}

// src/tables/structure.tsx
var INDEXES = `
select c.relname as name, pg_get_indexdef(i.indexrelid) as definition, i.indisunique as "unique", i.indisvalid as valid,
       pg_size_pretty(pg_relation_size(i.indexrelid)) as size, coalesce(s.idx_scan, 0)::text as scans
from pg_index i join pg_class c on c.oid = i.indexrelid
left join pg_stat_all_indexes s on s.indexrelid = i.indexrelid
where i.indrelid = to_regclass(:name) order by i.indisprimary desc, c.relname`;
var POLICIES = `
select p.polname as name, case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE' else 'ALL' end as command,
       case when p.polpermissive then 'permissive' else 'restrictive' end as kind,
       array(select case r when 0 then 'PUBLIC' else pg_get_userbyid(r)::text end from unnest(p.polroles) r) as roles,
       pg_get_expr(p.polqual, p.polrelid) as "using", pg_get_expr(p.polwithcheck, p.polrelid) as "check"
from pg_policy p where p.polrelid = to_regclass(:name) order by 1`;
var SECURITY = `
select relrowsecurity as enabled, relforcerowsecurity as forced, pg_get_userbyid(relowner)::text as owner, pg_has_role(relowner, 'USAGE') as owned
from pg_class where oid = to_regclass(:name)`;
function Structure({ table: table2, part }) {
  return /* @__PURE__ */ a4("div", { class: "sheet", role: "region", tabIndex: 0, "aria-label": "Definition", children: [
    part === "structure" && /* @__PURE__ */ a4(Columns, { table: table2 }),
    part === "indexes" && /* @__PURE__ */ a4(FromCatalog, { table: table2, query: INDEXES, draw: (rows) => /* @__PURE__ */ a4(Indexes, { rows }) }),
    part === "policies" && /* @__PURE__ */ a4(FromCatalog, { table: table2, query: SECURITY, draw: (rows) => /* @__PURE__ */ a4(Policies, { table: table2, security: rows[0] }) })
  ] });
}
function FromCatalog({ table: table2, query, draw }) {
  const rows = useSignal(null);
  const problem = useSignal(null);
  A2(() => {
    sql(statement(query, { name: table2.sqlName })).then(({ data }) => rows.value = data).catch((error) => problem.value = sentence(error));
  }, [query, table2]);
  if (problem.value) return /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: problem.value });
  return rows.value ? draw(rows.value) : /* @__PURE__ */ a4("p", { class: "hint", children: "Reading the catalog…" });
}
function Columns({ table: table2 }) {
  const target = (name) => table2.foreignKeys.find(({ columns }) => columns.includes(name));
  const commented = table2.columns.some(({ comment }) => comment !== null);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("h2", { children: "Columns" }),
    /* @__PURE__ */ a4("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Columns", children: /* @__PURE__ */ a4("table", { children: [
      /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
        /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Type" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Null" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Default" }),
        /* @__PURE__ */ a4("th", { scope: "col", children: "Refers to" }),
        commented && /* @__PURE__ */ a4("th", { scope: "col", children: "Comment" })
      ] }) }),
      /* @__PURE__ */ a4("tbody", { children: table2.columns.map((column3) => {
        const link = target(column3.name);
        return /* @__PURE__ */ a4("tr", { children: [
          /* @__PURE__ */ a4("th", { scope: "row", children: [
            column3.name,
            table2.key.includes(column3) && /* @__PURE__ */ a4("small", { children: " key" })
          ] }),
          /* @__PURE__ */ a4("td", { children: /* @__PURE__ */ a4("code", { children: fullTypeName(column3) }) }),
          /* @__PURE__ */ a4("td", { children: column3.not_null ? "no" : "yes" }),
          /* @__PURE__ */ a4("td", { children: [
            column3.generated && !column3.identity && "generated ",
            column3.default_value ? /* @__PURE__ */ a4("code", { children: column3.default_value }) : column3.identity ? "identity" : ""
          ] }),
          /* @__PURE__ */ a4("td", { children: link && /* @__PURE__ */ a4("a", { href: hrefOf({ area: "tables", schema: link.schema, table: link.table }), children: [
            link.table,
            "(",
            link.referenced.join(", "),
            ")"
          ] }) }),
          commented && /* @__PURE__ */ a4("td", { children: column3.comment ?? "" })
        ] }, column3.name);
      }) })
    ] }) }),
    /* @__PURE__ */ a4("h2", { children: "Constraints" }),
    table2.constraints.length === 0 && /* @__PURE__ */ a4("p", { class: "hint", children: "None." }),
    /* @__PURE__ */ a4("ul", { class: "definitions", children: table2.constraints.map(({ name, definition }) => /* @__PURE__ */ a4("li", { children: [
      /* @__PURE__ */ a4("strong", { children: name }),
      " ",
      /* @__PURE__ */ a4("code", { children: definition })
    ] }, name)) })
  ] });
}
function Indexes({ rows }) {
  if (rows.length === 0) return /* @__PURE__ */ a4("p", { class: "hint", children: "This table has no index." });
  return /* @__PURE__ */ a4("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Indexes", children: /* @__PURE__ */ a4("table", { children: [
    /* @__PURE__ */ a4("thead", { children: /* @__PURE__ */ a4("tr", { children: [
      /* @__PURE__ */ a4("th", { scope: "col", children: "Name" }),
      /* @__PURE__ */ a4("th", { scope: "col", children: "Definition" }),
      /* @__PURE__ */ a4("th", { scope: "col", children: "Size" }),
      /* @__PURE__ */ a4("th", { scope: "col", children: "Scans" })
    ] }) }),
    /* @__PURE__ */ a4("tbody", { children: rows.map((row) => /* @__PURE__ */ a4("tr", { children: [
      /* @__PURE__ */ a4("th", { scope: "row", children: [
        String(row.name),
        row.unique === true && /* @__PURE__ */ a4("small", { children: " unique" }),
        row.valid === false && /* @__PURE__ */ a4("small", { class: "bad", children: " not valid" })
      ] }),
      /* @__PURE__ */ a4("td", { children: /* @__PURE__ */ a4("code", { children: String(row.definition) }) }),
      /* @__PURE__ */ a4("td", { children: String(row.size) }),
      /* @__PURE__ */ a4("td", { children: String(row.scans) })
    ] }, String(row.name))) })
  ] }) });
}
function Policies({ table: table2, security }) {
  const enabled = security?.enabled === true;
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("p", { children: enabled ? `Row level security is on${security?.forced === true ? " and applies to the table's owner too" : ""}. A user sees and writes only the rows that a policy allows.` : "Row level security is off: everybody with a right on the table sees all of its rows." }),
    /* @__PURE__ */ a4(
      FromCatalog,
      {
        table: table2,
        query: POLICIES,
        draw: (rows) => rows.length === 0 ? /* @__PURE__ */ a4("p", { class: "hint", children: enabled ? "There is no policy, so only the table's owner sees rows." : "There is no policy." }) : /* @__PURE__ */ a4("ul", { class: "policies", children: rows.map((row) => /* @__PURE__ */ a4("li", { class: "card", children: [
          /* @__PURE__ */ a4("h3", { children: [
            String(row.name),
            " ",
            /* @__PURE__ */ a4("small", { children: [
              String(row.command),
              " · ",
              String(row.kind),
              " · ",
              row.roles.join(", ")
            ] })
          ] }),
          /* @__PURE__ */ a4("dl", { children: [
            row.using != null && /* @__PURE__ */ a4("div", { children: [
              /* @__PURE__ */ a4("dt", { children: "Rows that are seen" }),
              /* @__PURE__ */ a4("dd", { children: /* @__PURE__ */ a4("code", { children: String(row.using) }) })
            ] }),
            row.check != null && /* @__PURE__ */ a4("div", { children: [
              /* @__PURE__ */ a4("dt", { children: "Rows that may be written" }),
              /* @__PURE__ */ a4("dd", { children: /* @__PURE__ */ a4("code", { children: String(row.check) }) })
            ] })
          ] })
        ] }, String(row.name))) })
      }
    ),
    /* @__PURE__ */ a4(NewPolicy, { table: table2, owner: security?.owned === true ? null : String(security?.owner) })
  ] });
}
function NewPolicy({ table: table2, owner: owner2 }) {
  const { written, kind } = table2.entry;
  if (!claims.value?.superUser || !["r", "p"].includes(kind)) return null;
  const write2 = () => {
    mode.value = "sql";
    replace("sql", `-- Each user sees and writes the rows whose column owner has the user's role.
alter table ${written} enable row level security;
create policy own_rows on ${written} using (owner = current_user);
`);
    goTo({ area: "query" });
  };
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("p", { class: "next", children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: write2, children: "Write a policy" }),
      " ",
      /* @__PURE__ */ a4("a", { href: `${home}/docs/how-to/row-level-security`, target: "_blank", rel: "noopener", children: "Recipes" })
    ] }),
    owner2 !== null && /* @__PURE__ */ a4("p", { class: "hint", children: [
      "The table belongs to the role ",
      owner2,
      ", which alone may change its policies: run the statement as that role, for example with psql."
    ] })
  ] });
}

// src/catalog/table.ts
var COLUMNS2 = `
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, format_type(a.atttypid, -1) as "cast",
       t.typname as typname, t.typcategory::text as category, a.attnotnull as not_null,
       pg_get_expr(d.adbin, case a.attgenerated when '' then 0 else d.adrelid end) as default_value,
       a.attgenerated <> '' or a.attidentity = 'a' as generated, a.attidentity <> '' as identity,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT') as readable,
       has_column_privilege(a.attrelid, a.attnum, 'UPDATE') as updatable,
       has_column_privilege(a.attrelid, a.attnum, 'INSERT') as insertable,
       col_description(a.attrelid, a.attnum) as comment,
       (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = a.atttypid) as labels
from pg_attribute a join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = to_regclass(:name) and a.attnum > 0 and not a.attisdropped
order by a.attnum`;
var CONSTRAINTS = `
select c.conname as name, c.contype::text as type, pg_get_constraintdef(c.oid) as definition,
       array(select a.attname::text from unnest(c.conkey) with ordinality k(n, i)
             join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.i) as columns,
       n.nspname as ref_schema, r.relname as ref_table,
       array(select a.attname::text from unnest(c.confkey) with ordinality k(n, i)
             join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by k.i) as ref_columns
from pg_constraint c
left join pg_class r on r.oid = c.confrelid left join pg_namespace n on n.oid = r.relnamespace
where c.conrelid = to_regclass(:name) and c.contype in ('p', 'u', 'f', 'c', 'x')
order by c.contype, c.conname`;
var RIGHTS = `
select has_any_column_privilege(c.oid, 'INSERT') and (pg_relation_is_updatable(c.oid, false) & 8) > 0 as can_insert,
       has_any_column_privilege(c.oid, 'UPDATE') and (pg_relation_is_updatable(c.oid, false) & 4) > 0 as can_update,
       has_table_privilege(c.oid, 'DELETE') and (pg_relation_is_updatable(c.oid, false) & 16) > 0 as can_delete
from pg_class c where c.oid = to_regclass(:name)`;
async function loadTable(entry, signal) {
  const sqlName = `${ident(entry.schema)}.${ident(entry.name)}`;
  const name = { name: sqlName };
  const read3 = async (query) => (await sql(statement(query, name), signal)).data;
  const [columns, constraints, rights] = await Promise.all([
    read3(COLUMNS2),
    read3(CONSTRAINTS),
    read3(RIGHTS)
  ]);
  if (columns.length === 0 && rights.length === 0) throw new Error(`There is no table ${sqlName} that you may read.`);
  return {
    entry,
    sqlName,
    columns: columns.filter((column3) => column3.readable),
    key: keyOf2(columns, constraints),
    foreignKeys: constraints.filter(({ type }) => type === "f").map((row) => ({
      name: row.name,
      columns: row.columns,
      schema: row.ref_schema,
      table: row.ref_table,
      referenced: row.ref_columns
    })),
    constraints,
    canInsert: rights[0]?.can_insert ?? false,
    canUpdate: rights[0]?.can_update ?? false,
    canDelete: rights[0]?.can_delete ?? false
  };
}
function keyOf2(columns, constraints) {
  const byName = (names) => names.map((name) => columns.find((column3) => column3.name === name));
  const usable = (found) => found.every((column3) => column3 !== void 0 && column3.readable && column3.not_null);
  const candidates = [...constraints].sort((a5, b3) => Number(b3.type === "p") - Number(a5.type === "p"));
  for (const { type, columns: names } of candidates) {
    const found = byName(names);
    if ((type === "p" || type === "u") && usable(found)) return found;
  }
  return [];
}

// src/tables/view.ts
var FEED_LENGTH = 200;
var FLASH = 1600;
var GATHERED = 16;
var COMPARED = 50;
var COMPARABLE = /* @__PURE__ */ new Set(["int2", "int4", "int8", "numeric", "text", "varchar", "bool", "date", "uuid"]);
var AS_TYPED = /* @__PURE__ */ new Set(["text", "varchar"]);
var isComparable = ({ typname, labels }) => COMPARABLE.has(typname) || labels !== null;
var TableView = class _TableView {
  constructor(table2, filters) {
    this.table = table2;
    this.filters.value = filters;
    this.rows.value = new Rows2(table2, filters, []);
    this.listen();
  }
  filters = y3([]);
  order = y3([]);
  rows = y3(void 0);
  active = y3(null);
  feed = y3([]);
  /** Why there is no live feed, or what it is waiting for. */
  feedNote = y3("Waiting for the feed…");
  /** Whether the service has ended the feed, as when a column was dropped. */
  feedEnded = y3(false);
  /** Whether the table is to be opened again: it has other columns, keys or rights than it had. */
  outdated = y3(false);
  /** Keys of rows that have just changed, by when. */
  flashing = y3(/* @__PURE__ */ new Map());
  /** When our own changes were sent and what they replaced, by key. */
  sent = /* @__PURE__ */ new Map();
  counter = 0;
  unwatch = () => void 0;
  received = [];
  taking;
  refreshing;
  static async open(entry, filters, abort) {
    return new _TableView(await loadTable(entry, abort), filters);
  }
  close() {
    this.unwatch();
    clearTimeout(this.taking);
    clearTimeout(this.refreshing);
    this.rows.value.dispose();
  }
  /** Reads the rows again with other filters or another order. */
  arrange(filters, order) {
    this.rows.value.dispose();
    this.filters.value = filters;
    this.order.value = order;
    this.active.value = null;
    this.rows.value = new Rows2(this.table, filters, order);
  }
  /** Remembers when a change was sent, to tell how long its event took. */
  noteSent(key, edit) {
    this.sent.set(keyText(key), { at: performance.now(), edit });
  }
  /** A change that was sent and refused has no event. */
  forgetSent(key) {
    this.sent.delete(keyText(key));
  }
  /** An insert whose key the database makes. */
  noteInsert() {
    this.sent.set("insert", { at: performance.now() });
  }
  listen() {
    const { kind } = this.table.entry;
    if (kind === "v" || kind === "m" || kind === "f") {
      this.feedNote.value = "Views and foreign tables have no live feed. Open the table behind it.";
      return;
    }
    this.unwatch = watch({
      schema: this.table.entry.schema,
      table: this.table.entry.name,
      onReady: () => {
        this.feedNote.value = null;
        this.refreshSoon();
      },
      onChanges: (changes) => this.receive(changes),
      onResync: (reason) => {
        this.add(null, `There is a gap (${reason}); the rows were read again.`, null);
        this.refreshSoon();
      },
      onWait: (text) => this.feedNote.value = `${asSentence(text)} It is tried again.`,
      onEnd: (text) => {
        this.feedNote.value = asSentence(text);
        this.feedEnded.value = true;
      }
    });
  }
  /** Collects changes for a moment, because a statement may send thousands of batches. */
  receive(changes) {
    this.received = [...this.received, ...changes.slice(-FEED_LENGTH)].slice(-FEED_LENGTH);
    this.taking ??= setTimeout(() => {
      this.taking = void 0;
      this.take(this.received);
      this.received = [];
    }, GATHERED);
  }
  take(changes) {
    const flashing = new Map(this.flashing.value);
    const flashed = [];
    for (const change of changes) {
      const key = this.table.key.map(({ name }) => String(change.row[name] ?? change.key.find(([of]) => of === name)?.[1]));
      const text = keyText(key);
      const named2 = this.table.key.map(({ name }, index) => `${name} ${key[index]}`).join(", ");
      const sent = this.takeSent(change, text);
      const differences = changes.length > COMPARED ? [] : this.differences(change, text, sent);
      this.add(change, named2, sent ? performance.now() - sent.at : null, differences);
      flashing.set(text, change.op.toLowerCase());
      flashed.push(text);
    }
    this.flashing.value = flashing;
    setTimeout(() => this.endFlash(flashed), FLASH);
    this.refreshSoon();
  }
  /** The sent edit that this change confirms. Another user may have changed the same row as well. */
  takeSent(change, key) {
    const name = this.sent.has(key) ? key : change.op === "INSERT" ? "insert" : key;
    const sent = this.sent.get(name);
    if (sent?.edit) {
      const { name: edited, value } = sent.edit;
      const column3 = this.table.columns.find((one2) => one2.name === edited);
      const now = change.row[edited];
      const kept = column3 && (AS_TYPED.has(column3.typname) || column3.labels !== null);
      if (kept && now !== void 0 && value !== (now === null ? null : showValue(now))) return void 0;
    }
    this.sent.delete(name);
    return sent;
  }
  /** What an update has changed, as far as the former row is known. */
  differences(change, key, sent) {
    if (change.op !== "UPDATE") return [];
    const own = sent?.edit;
    const index = this.rows.value.indexOf(key);
    const row = index === void 0 ? void 0 : this.rows.value.row(index);
    return this.table.columns.flatMap((of, column3) => {
      if (own?.name === of.name) return [own];
      const was = row?.cells[column3];
      const now = change.row[of.name];
      if (was === void 0 || now === void 0 || !isComparable(of) || was !== null && isCut(of, was)) return [];
      return was === (now === null ? null : showValue(now)) ? [] : [{ name: of.name, was }];
    });
  }
  endFlash(keys) {
    const rest = new Map(this.flashing.value);
    for (const key of keys) rest.delete(key);
    this.flashing.value = rest;
  }
  add(change, text, latency, differences = []) {
    const entry = { id: this.counter += 1, at: /* @__PURE__ */ new Date(), change, text, latency, differences };
    this.feed.value = [entry, ...this.feed.value].slice(0, FEED_LENGTH);
  }
  /** Reads the rows again, and whether others have changed the table. */
  async readAgain() {
    this.rows.value.refresh();
    const now = await loadTable(this.table.entry).catch(() => null);
    this.outdated.value = now !== null && JSON.stringify(now) !== JSON.stringify(this.table);
  }
  /** Reads what is in view again, at most every 300 ms. */
  refreshSoon() {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = void 0;
      this.rows.value.refresh();
    }, 300);
  }
};
var asSentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, ".");

// src/tables/page.tsx
var AGAIN = 3e3;
function TablesPage() {
  const at = route.value;
  const entry = tables.value?.find(({ schema, name }) => schema === at.schema && name === at.table);
  const view = useSignal(null);
  const problem = useSignal(null);
  const tries = useSignal(0);
  const filters = JSON.stringify(at.filters ?? []);
  A2(() => {
    problem.value = null;
    if (!entry) return;
    const abort = new AbortController();
    let opened2 = null;
    TableView.open(entry, JSON.parse(filters), abort.signal).then((made) => {
      opened2 = made;
      if (abort.signal.aborted) made.close();
      else view.value = made;
    }).catch((error) => {
      if (!abort.signal.aborted) problem.value = sentence(error);
    });
    return () => {
      abort.abort();
      opened2?.close();
      view.value = null;
    };
  }, [entry, filters, claims.value?.sub, tries.value]);
  A2(() => {
    if (!problem.value || online.value) return;
    const timer3 = setTimeout(() => tries.value += 1, AGAIN);
    return () => clearTimeout(timer3);
  }, [problem.value, online.value]);
  const missing = at.table && tables.value && !entry;
  return /* @__PURE__ */ a4("div", { class: `area tables-area ${at.table ? "with-table" : ""}`, children: [
    !isMember.value && /* @__PURE__ */ a4(TableList, {}),
    /* @__PURE__ */ a4("main", { class: "workspace", id: "content", tabIndex: -1, children: [
      !at.table && /* @__PURE__ */ a4(Overview, {}),
      missing && /* @__PURE__ */ a4("p", { class: "empty", children: [
        "There is no table ",
        at.schema,
        ".",
        at.table,
        " that you may see. ",
        /* @__PURE__ */ a4("a", { href: "#/tables", children: "All tables" })
      ] }),
      problem.value && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: [
        problem.value,
        " ",
        /* @__PURE__ */ a4("button", { type: "button", onClick: () => tries.value += 1, children: "Try again" })
      ] }),
      at.table && !view.value && /* @__PURE__ */ a4("h1", { class: "sr", children: at.table }),
      at.table && !missing && !view.value && !problem.value && /* @__PURE__ */ a4("p", { class: "empty", children: [
        "Opening ",
        at.table,
        "…"
      ] }),
      view.value && /* @__PURE__ */ a4(OpenTable, { view: view.value, onOutdated: () => tries.value += 1 }, view.value.table.sqlName + filters)
    ] })
  ] });
}
var PARTS2 = [["rows", "Rows"], ["structure", "Structure"], ["indexes", "Indexes"], ["policies", "Policies"]];
function OpenTable({ view, onOutdated }) {
  const { table: table2 } = view;
  const part = useSignal("rows");
  A2(() => {
    if (view.outdated.value) onOutdated();
  }, [view.outdated.value]);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("header", { class: "table-head", children: [
      /* @__PURE__ */ a4("a", { class: "back", href: "#/tables", "aria-label": "All tables", children: "‹" }),
      /* @__PURE__ */ a4("h1", { dir: "auto", children: [
        /* @__PURE__ */ a4("small", { children: [
          table2.entry.schema,
          "."
        ] }),
        table2.entry.name
      ] }),
      /* @__PURE__ */ a4("span", { class: "hint", children: [
        KINDS[table2.entry.kind],
        table2.entry.comment && ` · ${table2.entry.comment}`
      ] }),
      /* @__PURE__ */ a4("div", { class: "tabs", role: "group", "aria-label": "What to show", children: PARTS2.map(([name, text]) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": part.value === name, onClick: () => part.value = name, children: text }, name)) })
    ] }),
    part.value === "rows" ? /* @__PURE__ */ a4(RowsPart, { view }) : /* @__PURE__ */ a4(Structure, { table: table2, part: part.value })
  ] });
}
function RowsPart({ view }) {
  const filtering = useSignal(view.filters.value.length > 0);
  const inserting = useSignal(false);
  const importing = useSignal(false);
  const deleting = useSignal(null);
  const { table: table2 } = view;
  const rows = view.rows.value;
  const activeRow = view.active.value && rows.row(view.active.value.row);
  const askDelete = () => {
    if (table2.canDelete && table2.key.length > 0 && activeRow) deleting.value = activeRow.key;
  };
  const remove = async (key) => {
    deleting.value = null;
    view.noteSent(key);
    try {
      await deleteRow(table2, key);
      sayDone("The row was deleted.");
    } catch (error) {
      view.forgetSent(key);
      sayError(error instanceof Conflict ? new Error("The row was gone already, or you may not delete it.") : error);
    }
    view.refreshSoon();
  };
  return /* @__PURE__ */ a4("div", { class: "table-rows", children: [
    /* @__PURE__ */ a4("div", { class: "main-column", children: [
      /* @__PURE__ */ a4("div", { class: "toolbar", role: "toolbar", "aria-label": "Rows", children: [
        table2.canInsert && /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => inserting.value = true, children: "New row" }),
        /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": filtering.value, onClick: () => filtering.value = !filtering.value, children: [
          "Filter",
          view.filters.value.length > 0 && ` (${view.filters.value.length})`
        ] }),
        table2.canDelete && table2.key.length > 0 && /* @__PURE__ */ a4("button", { type: "button", disabled: !activeRow, onClick: askDelete, children: "Delete row" }),
        table2.canInsert && /* @__PURE__ */ a4("button", { type: "button", onClick: () => importing.value = true, children: "Import CSV" }),
        /* @__PURE__ */ a4("button", { type: "button", onClick: () => void exportCsv(view), children: "Export CSV" }),
        /* @__PURE__ */ a4("button", { type: "button", onClick: () => void view.readAgain(), children: "Refresh" }),
        /* @__PURE__ */ a4("span", { class: "spread" }),
        /* @__PURE__ */ a4(Count, { view })
      ] }),
      filtering.value && /* @__PURE__ */ a4(FilterBar, { view, onClose: () => filtering.value = false }, JSON.stringify([view.filters.value, view.order.value])),
      /* @__PURE__ */ a4(ReadOnlyNote, { view }),
      rows.problem.value !== null && /* @__PURE__ */ a4("p", { class: "problem", role: "alert", children: [
        sentence(rows.problem.value),
        " ",
        /* @__PURE__ */ a4("button", { type: "button", onClick: () => void view.readAgain(), children: "Try again" })
      ] }),
      /* @__PURE__ */ a4(EmptyNote, { view }),
      /* @__PURE__ */ a4(RowGrid, { view, onDelete: askDelete })
    ] }),
    /* @__PURE__ */ a4(FeedPanel, { view }),
    inserting.value && /* @__PURE__ */ a4(InsertDialog, { view, onClose: () => inserting.value = false }),
    importing.value && /* @__PURE__ */ a4(ImportDialog, { view, onClose: () => importing.value = false }),
    deleting.value && /* @__PURE__ */ a4(
      Confirm,
      {
        title: "Delete this row?",
        action: "Delete",
        onClose: () => deleting.value = null,
        onConfirm: () => void remove(deleting.value),
        text: `${table2.key.map(({ name }, index) => `${name} ${deleting.value[index]}`).join(", ")} of ${table2.entry.name}. This cannot be undone.`
      }
    )
  ] });
}
function Count({ view }) {
  const { total: counted, problem } = view.rows.value;
  const total = counted.value;
  if (!total) return problem.value === null ? /* @__PURE__ */ a4("span", { class: "hint", children: "Counting…" }) : null;
  const count2 = total.count.toLocaleString("en");
  return /* @__PURE__ */ a4("span", { class: "hint", role: "status", children: total.exact ? `${count2} row${total.count === 1 ? "" : "s"}` : `about ${count2} rows` });
}
function EmptyNote({ view }) {
  const { total } = view.rows.value;
  if (total.value?.count !== 0 || !total.value.exact) return null;
  const text = view.filters.value.length > 0 ? "No row matches the filter." : `This ${KINDS[view.table.entry.kind]} has no rows${view.table.canInsert ? " yet: New row or Import CSV adds some" : " that you may see"}.`;
  return /* @__PURE__ */ a4("p", { class: "empty-rows", children: text });
}
function ReadOnlyNote({ view }) {
  const { table: table2 } = view;
  const { kind } = table2.entry;
  if (table2.key.length === 0 && table2.canUpdate) {
    const way = kind === "v" || kind === "f" ? "Edit them in the table behind it." : "Add one to edit rows.";
    return /* @__PURE__ */ a4("p", { class: "note", children: [
      "Rows cannot be edited here: this ",
      KINDS[kind],
      " has no primary key, so a single row cannot be named. ",
      way
    ] });
  }
  if (!table2.canUpdate && !table2.canInsert && !table2.canDelete) {
    return /* @__PURE__ */ a4("p", { class: "note", children: [
      "Read-only: you may read this ",
      KINDS[kind],
      " but not change it."
    ] });
  }
  return null;
}

// src/app.tsx
function App({ problem }) {
  if (!session.value) return /* @__PURE__ */ a4(SignIn, { problem });
  return /* @__PURE__ */ a4(Console, {});
}
function Console() {
  const subject = claims.value?.sub;
  A2(() => {
    const abort = new AbortController();
    tables.value = isMember.peek() ? [] : null;
    if (isMember.peek()) return;
    loadTables(abort.signal).catch((error) => {
      tables.value = [];
      sayError(error);
    });
    return () => abort.abort();
  }, [subject]);
  const looksAtList = route.value.area === "tables" && !route.value.table;
  A2(() => {
    const refresh2 = () => void (tables.peek() && !isMember.peek() && refreshTables().catch(() => void 0));
    if (looksAtList) refresh2();
    addEventListener("focus", refresh2);
    return () => removeEventListener("focus", refresh2);
  }, [looksAtList]);
  const title = [nameOf(route.value), claims.value?.database, "Tidegate"].join(" · ");
  A2(() => {
    document.title = title;
  }, [title]);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("a", { class: "skip", href: "#content", onClick: (event) => {
      event.preventDefault();
      document.getElementById("content")?.focus();
    }, children: "Skip to content" }),
    /* @__PURE__ */ a4(Header, {}),
    /* @__PURE__ */ a4(ActingBar, {}),
    !online.value && /* @__PURE__ */ a4("p", { class: "offline", role: "alert", children: "The server cannot be reached. What you do next tries again." }),
    /* @__PURE__ */ a4(Area, {}),
    /* @__PURE__ */ a4(Notices, {}),
    sessionEnded.value && /* @__PURE__ */ a4(SessionEnded, {})
  ] });
}
var nameOf = (at) => at.area === "tables" && at.table || at.area[0].toUpperCase() + at.area.slice(1);
function Area() {
  if (route.value.area === "query") return /* @__PURE__ */ a4(QueryPage, {});
  if (route.value.area === "people") return /* @__PURE__ */ a4(PeoplePage, {});
  if (route.value.area === "activity") return /* @__PURE__ */ a4(ActivityPage, {});
  return /* @__PURE__ */ a4(TablesPage, {}, claims.value?.sub);
}
function SessionEnded() {
  const again = () => signInAgain().catch((error) => sayError(new Error(sentence(error))));
  return /* @__PURE__ */ a4(Dialog, { title: "Your session has ended", onClose: () => sessionEnded.value = false, children: [
    /* @__PURE__ */ a4("p", { children: "Sign in again to go on. Nothing on this page is lost." }),
    /* @__PURE__ */ a4("footer", { children: /* @__PURE__ */ a4("button", { type: "button", class: "primary", onClick: () => void again(), children: "Sign in" }) })
  ] });
}

// src/main.tsx
var root = document.getElementById("app");
resume().then((problem) => Q(/* @__PURE__ */ a4(App, { problem }), root)).catch((error) => Q(/* @__PURE__ */ a4(App, { problem: String(error) }), root));
