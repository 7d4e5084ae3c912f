function e({src:e,key:n}){let r=e.replace(/\/+$/,``);async function i(e,i,a){try{let o=await fetch(r+e,{method:`POST`,headers:{authorization:`Bearer ${n}`,"content-type":`application/json`,...a?{"idempotency-key":a}:{}},body:JSON.stringify(i),credentials:`omit`,signal:AbortSignal.timeout(15e3)}),s=await o.json().catch(()=>null);return o.ok&&s?{ok:!0,answer:s}:{ok:!1,problem:t(o,s)}}catch{let{navigator:e}=globalThis;return{ok:!1,problem:{code:e?.onLine===!1?`offline`:`unreachable`}}}}return{send:({idempotencyKey:e,...t})=>i(`/v1/captchas`,t,e),check:e=>i(`/v1/captchas/check`,e)}}function t({status:e,headers:t},n){let r=Number(t.get(`retry-after`))*1e3||2e3;return typeof n?.code==`string`?{retryAfterMs:r,...n}:{code:e<500&&e!==429?`internal`:`unavailable`,retryAfterMs:r}}async function n(e,t,n){let r=await e();for(let i=0;i<3;i++){if(n.aborted)return;if(r.ok||r.problem.code!==`challenge_required`)return r;try{r=await e(await t(r.problem.challenge))}catch(e){return n.aborted?void 0:(console.error(`<postern-code> could not solve the challenge:`,e),r)}}return n.aborted?void 0:r}var r=class extends Error{};async function i(e,t){let{algorithm:n,nonce:i,salt:s,cost:c,keyLength:l,keyPrefix:u}=e.parameters,d=/^PBKDF2\/(SHA-(?:256|384|512))$/.exec(n)?.[1];if(!d||!crypto.subtle)throw new r(`${n} can't be solved here`);let f={name:`PBKDF2`,hash:d,salt:a(s),iterations:c},p=a(i),m=0,h;async function g(){let e=new Uint8Array(p.length+4);e.set(p);let n=new DataView(e.buffer);for(;!h&&m<1e7;){t?.throwIfAborted();let r=m++;n.setUint32(p.length,r);let i=await crypto.subtle.importKey(`raw`,e,`PBKDF2`,!1,[`deriveBits`]),a=await crypto.subtle.deriveBits(f,i,l*8),s=o(new Uint8Array(a));s.startsWith(u)&&(h={counter:r,derivedKey:s})}}let _=globalThis.navigator?.hardwareConcurrency??2;if(await Promise.all(Array.from({length:Math.min(2*_,8)},g)),!h)throw new r(`no counter fits`);return btoa(JSON.stringify({challenge:e,solution:h}))}const a=e=>Uint8Array.from(e.match(/../g)??[],e=>Number.parseInt(e,16)),o=e=>Array.from(e,e=>e.toString(16).padStart(2,`0`)).join(``);function s(e){return e.normalize(`NFKC`).replace(/[٠-٩۰-۹]/g,e=>String(e.codePointAt(0)&15)).replace(/\D/g,``)}function c(e){let t=Math.ceil(e/1e3),[n=0,r=0,i=0]=[Math.floor(t/3600),Math.floor(t/60)%60,t%60],a=e=>String(e).padStart(2,`0`);return n>0?`${n}:${a(r)}:${a(i)}`:`${r}:${a(i)}`}const l=e=>Number.parseInt(e.replace(`-`,``).slice(0,12),16);function u(e,t){let n=Date.now(),r=n-l(e);return r>-1e3&&r<n-t+1e3?0:r}function d(e){try{let t=e.split(`.`)[1]?.replaceAll(`-`,`+`).replaceAll(`_`,`/`)??``,{iat:n,exp:r}=JSON.parse(atob(t));return(r-n)*1e3||void 0}catch{return}}const f={smsLabel:`Mobile number`,emailLabel:`Email address`,smsGiven:`You will get a code by text message.`,emailGiven:`You will get a code by email.`,givenTo:`You will get a code at {to}.`,send:`Send code`,sendIn:`Send code in {time}`,again:`Send again`,againIn:`Send again in {time}`,codeLabel:`Code sent to {to}`,useSms:`Use a text message instead`,useEmail:`Use email instead`,smsChange:`Change number`,emailChange:`Change address`,sending:`Sending…`,sent:`A code of {n} digits is on its way.`,sentEmail:`A code of {n} digits is on its way. Look in your spam folder too.`,checking:`Checking…`,passed:`Confirmed.`,solving:`Making sure you are a person. This takes a few seconds…`,challenge:`Please answer the question below to go on.`,challengeFailed:`That could not be confirmed. Try again.`,wrong:`This code is wrong. You have {n} tries left.`,wrongOne:`This code is wrong. You have one try left.`,wrongLast:`This code was wrong, and no try is left. Ask for a new one.`,gone:`This code is no longer valid. Ask for a new one.`,limited:`Too many codes were asked for. Try again when the countdown ends.`,limitedOther:`Too many codes were asked for. Wait for the countdown, or use the other way below.`,locked:`Too many wrong codes. Ask for a new one when the countdown ends.`,ready:`You can ask for a code now.`,smsEmpty:`Enter your mobile number first.`,emailEmpty:`Enter your email address first.`,smsInvalid:`This is not a mobile number. Check it, with its country code.`,emailInvalid:`This is not an email address. Check how it is spelled.`,smsNotAllowed:`No codes are sent to this number. Use another one.`,emailNotAllowed:`No codes are sent to this address. Use another one.`,offline:`You are offline. Connect to the internet, then try again.`,unavailable:`The service does not answer right now. Wait a moment, then try again.`,setup:`This form is not set up right. Please tell the people of this site.`,passExpired:`That was confirmed too long ago. Ask for a new code.`,required:`Confirm this with a code first.`},p={smsLabel:`手机号`,emailLabel:`邮箱地址`,smsGiven:`验证码将以短信发送给您。`,emailGiven:`验证码将发送到您的邮箱。`,givenTo:`验证码将发送至 {to}。`,send:`获取验证码`,sendIn:`{time} 后可获取`,again:`重新发送`,againIn:`{time} 后可重发`,codeLabel:`发送至 {to} 的验证码`,useSms:`改用短信验证`,useEmail:`改用邮箱验证`,smsChange:`更换手机号`,emailChange:`更换邮箱`,sending:`正在发送…`,sent:`{n} 位验证码已发出，请注意查收。`,sentEmail:`{n} 位验证码已发出，请查收邮件，也请查看垃圾邮件。`,checking:`正在验证…`,passed:`验证成功。`,solving:`正在进行人机验证，请稍候几秒…`,challenge:`请先完成下方的人机验证。`,challengeFailed:`人机验证未通过，请重试。`,wrong:`验证码错误，还可再试 {n} 次。`,wrongOne:`验证码错误，还可再试 1 次。`,wrongLast:`验证码错误，已无剩余次数，请重新获取。`,gone:`验证码已失效，请重新获取。`,limited:`获取过于频繁，请在倒计时结束后重试。`,limitedOther:`获取过于频繁，请等待倒计时结束，或改用下方的其他方式。`,locked:`错误次数过多，请在倒计时结束后重新获取验证码。`,ready:`现在可以获取验证码了。`,smsEmpty:`请先输入手机号。`,emailEmpty:`请先输入邮箱地址。`,smsInvalid:`手机号无效，请检查号码和国家/地区代码。`,emailInvalid:`邮箱地址无效，请检查拼写。`,smsNotAllowed:`无法向该号码发送验证码，请换一个号码。`,emailNotAllowed:`无法向该邮箱发送验证码，请换一个邮箱。`,offline:`网络已断开，请连接网络后重试。`,unavailable:`服务暂时无响应，请稍后重试。`,setup:`此表单配置有误，请联系网站管理员。`,passExpired:`验证已过期，请重新获取验证码。`,required:`请先完成验证码验证。`},m=e=>/^zh\b/i.test(e)?p:f,h=(e,t)=>`${e}${t}`,g=(e,t={})=>e.replace(/\{(\w+)\}/g,(e,n)=>String(t[n]??``));function _(e,t){let{during:n,channel:r,hasOther:i}=t,a=e=>({name:h(r,e),about:`address`});switch(e.code){case`limited`:case`locked`:return{name:e.code===`locked`||n===`check`?`locked`:i?`limitedOther`:`limited`,waitMs:e.retryAfterMs};case`code_mismatch`:{let{triesLeft:t}=e;return t===0?{name:`wrongLast`,about:`code`,isGone:!0}:{name:t===1?`wrongOne`:`wrong`,about:`code`,values:{n:t}}}case`code_gone`:return{name:`gone`,about:`code`,isGone:!0};case`invalid_recipient`:return a(`Invalid`);case`destination_not_allowed`:return a(`NotAllowed`);case`challenge_required`:return{name:`challengeFailed`};case`offline`:return{name:`offline`};case`invalid_request`:return e.errors.some(({path:e})=>e===`to`)?a(`Invalid`):{name:`setup`,isFault:!0};default:return v(e)?{name:`unavailable`}:{name:`setup`,isFault:!0}}}const v=({code:e})=>[`offline`,`unreachable`,`unavailable`,`internal`,`idempotency_in_progress`].includes(e);function y(e){return{read(){try{let t=JSON.parse(sessionStorage.getItem(e)??``);return t.sent&&t.sent.expiresAtMs>Date.now()?t:{...t,sent:void 0}}catch{return}},write(t){try{t?sessionStorage.setItem(e,JSON.stringify(t)):sessionStorage.removeItem(e)}catch{}}}}const b=e=>({channel:e,step:`address`,isBusy:!1,isPassed:!1,waits:{},wrong:``,sent:void 0,message:void 0,onAnswer:void 0});function x({waits:e,channel:t},n){let r=e[t];return r?.to===n?Math.max(0,r.untilMs-Date.now()):0}function S(e,t){let{channel:n,step:r,isBusy:i,isPassed:a,sent:o,message:s,wrong:l}=e,{settings:u,given:d,waitMs:f,text:p}=t,m=c(f),g=u.channels.find(e=>e!==n);return{step:r,channel:n,given:d&&(d.input?p(h(n,`Given`)):p(`givenTo`,{to:d.to})),label:p(h(n,`Label`)),send:p(f>0?`sendIn`:`send`,{time:m}),codeLabel:p(`codeLabel`,{to:o?.shownTo??``}),codeLength:o?.codeLength??4,again:p(f>0?`againIn`:`again`,{time:m}),other:g&&p(g===`sms`?`useSms`:`useEmail`),change:r===`code`&&!d?p(h(n,`Change`)):void 0,message:s?p(s.name,s.values):``,tone:s?.tone??`plain`,wrong:l,canSend:!i&&f===0,canType:!i&&o?.expiresAtMs!==0&&s?.name!==`locked`,isBusy:i,isPassed:a}}const C=[`limited`,`limitedOther`,`locked`];function w(e,t,n){let r=b(`sms`),i;for(let t of[`focus`,`blur`,`keyup`,`pointerup`])e.code.addEventListener(t,u);return{state:r,addressOf:a,change:s,say:c,complain:l,draw:d,stop:p};function a(){return r.step===`code`&&r.sent?r.sent.to:o()?.to??e.address.value.trim()}function o(){let{given:e}=t;return e?.channel===r.channel?e:void 0}function s(e){Object.assign(r,e),d()}function c(e){s({isBusy:!0,wrong:``,message:{name:e,tone:`busy`}})}function l(t,n=``,r){if(e.challenge.replaceChildren(),s({isBusy:!1,onAnswer:void 0,wrong:n,message:{name:t,values:r,tone:`wrong`}}),n!==`address`)return;let i=o()?.input??e.address;i.hidden||i.focus()}function u(){let{code:t}=e;t.selectionStart===t.selectionEnd&&t.setSelectionRange(t.value.length,t.value.length),d()}function d(){let s=x(r,a());e.render(S(r,{settings:t,given:o(),waitMs:s,text:n})),s>0?i??=setInterval(f,250):p()}function f(){d(),!i&&C.includes(r.message?.name??``)&&s({message:{name:`ready`,tone:`plain`}})}function p(){clearInterval(i),i=void 0}}function T(e,t){let n=Date.now();return t?.about===e&&n-t.sinceMs<6e4?t:{about:e,key:crypto.randomUUID?.()??``,sinceMs:n}}let E=0;function D(e){let t=`postern-${++E}`,n=O(`div`,`postern-field`),r=k(n,`div`,`postern-steps`),i=k(r,`div`,`postern-step`),a=k(i,`label`,`postern-label`,{for:`${t}-to`}),o=k(i,`p`,`postern-label`,{id:`${t}-given`}),s=k(i,`div`,`postern-row`),c=k(s,`input`,`postern-input`,{id:`${t}-to`,maxlength:`254`,autocapitalize:`off`,spellcheck:`false`,"aria-describedby":`${t}-message`}),l=k(s,`button`,`postern-button`,{type:`button`,"aria-describedby":`${t}-given`}),u=k(r,`div`,`postern-step`),d=k(u,`label`,`postern-label`,{for:`${t}-code`}),f=k(u,`div`,`postern-row`),p=k(f,`div`,`postern-digits`,{dir:`ltr`}),m=k(p,`input`,`postern-code`,{id:`${t}-code`,type:`text`,inputmode:`numeric`,autocomplete:`one-time-code`,pattern:`[0-9]*`,spellcheck:`false`,"aria-describedby":`${t}-message`}),h=k(f,`button`,`postern-button postern-again`,{type:`button`}),g=k(n,`p`,`postern-message`,{id:`${t}-message`,role:`status`}),_=k(n,`div`,`postern-challenge`),v=k(n,`div`,`postern-links`),y=k(v,`button`,`postern-link`,{type:`button`}),b=k(v,`button`,`postern-link`,{type:`button`});e.append(n);let x=e=>k(n,`input`,``,{type:`hidden`,name:e}),S={pass:x(`postern-pass`),channel:x(`postern-channel`),to:x(`postern-to`)};function C(e,t){let n=p.querySelectorAll(`.postern-digit`);if(n.length!==e){for(let e of n)e.remove();for(let t=0;t<e;t++)k(p,`span`,`postern-digit`,{"aria-hidden":`true`})}let r=Math.min(m.value.length,e-1),i=!t&&m.matches(`:focus`);p.querySelectorAll(`.postern-digit`).forEach((e,t)=>{j(e,m.value[t]??``),e.classList.toggle(`postern-active`,i&&t===r)})}return{root:n,address:c,send:l,code:m,again:h,other:y,change:b,challenge:_,carry(e,t,n){S.pass.value=e,S.channel.value=t,S.to.value=n},pass:()=>S.pass.value,render(e){let{step:t,channel:r,codeLength:i,isPassed:s,tone:u,wrong:f}=e;n.dataset.step=t,n.dataset.tone=u;let p=r===`sms`;A(c,{type:p?`tel`:`email`,autocomplete:p?`tel`:`email`,inputmode:p?`tel`:`email`,dir:`ltr`,"aria-invalid":String(f===`address`)}),A(m,{maxlength:String(i),"aria-invalid":String(f===`code`)}),c.readOnly=e.isBusy,m.readOnly=s||!e.canType,j(a,e.label),j(o,e.given??``),a.hidden=c.hidden=e.given!==void 0,o.hidden=!c.hidden,j(l,e.send),j(d,e.codeLabel),j(h,e.again);for(let t of[l,h])A(t,{"aria-disabled":String(!e.canSend)});A(n,{"aria-busy":String(e.isBusy)}),n.classList.toggle(`postern-passed`,s),j(g,e.message),j(y,e.other??``),j(b,e.change??``),y.hidden=e.other===void 0,b.hidden=e.change===void 0,C(i,s)},remove(){n.remove()}}}function O(e,t){let n=document.createElement(e);return t&&(n.className=t),n}function k(e,t,n,r={}){let i=O(t,n);return A(i,r),e.append(i),i}function A(e,t){for(let[n,r]of Object.entries(t))e.getAttribute(n)!==r&&e.setAttribute(n,r)}function j(e,t){e.textContent!==t&&(e.textContent=t)}async function M(e){if(`OTPCredential`in globalThis)try{let t={otp:{transport:[`sms`]},signal:e};return(await navigator.credentials.get(t))?.code}catch{return}}function N(t,r,a){let o=D(t),c=w(o,r,a),{state:l,addressOf:f,change:p,say:m,complain:h,draw:g}=c,S,C=new AbortController,E=new AbortController,O,k=()=>e(r),A=()=>y(`postern ${r.src} ${r.key} ${r.scene}`);o.send.addEventListener(`click`,()=>B()),o.again.addEventListener(`click`,()=>B()),o.other.addEventListener(`click`,ee),o.change.addEventListener(`click`,te),o.address.addEventListener(`input`,()=>p({wrong:``,message:void 0})),o.address.addEventListener(`keydown`,e=>P(e,B)),o.code.addEventListener(`keydown`,e=>P(e,W)),o.code.addEventListener(`input`,()=>U(o.code.value)),o.code.addEventListener(`paste`,e=>{e.preventDefault(),o.code.readOnly||U(e.clipboardData?.getData(`text`)??``)});let j=t.closest(`form`);return addEventListener(`online`,Q),addEventListener(`pageshow`,$),j?.addEventListener(`reset`,I),j?.addEventListener(`submit`,X,{capture:!0}),N(),{begin:N,draw:g,reset:I,pass:o.pass,answer(e){let{onAnswer:t}=l;o.challenge.replaceChildren(),p({onAnswer:void 0}),t?.(e)},remove(){F(),removeEventListener(`online`,Q),removeEventListener(`pageshow`,$),j?.removeEventListener(`reset`,I),j?.removeEventListener(`submit`,X,{capture:!0}),o.remove()}};function N(){F();let{channels:e,given:t}=r,n=t&&e.includes(t.channel)?t.channel:e[0]??`sms`,i=A().read();o.carry(``,``,``),o.code.value=``,Object.assign(l,b(n)),i&&e.includes(i.channel)&&(Object.assign(l,i,{step:i.sent?`code`:`address`}),i.sent&&!o.address.value&&(o.address.value=i.sent.to)),r.key&&r.src&&e.length!==0||(console.error(`<postern-code> needs the attributes key, src and channels`),l.message={name:`setup`,tone:`wrong`}),g()}function F(){C.abort(),E.abort(),c.stop(),clearTimeout(S)}function I(){A().write(void 0),N()}function L(e){let{waits:t,channel:n}=l,r={to:f(),untilMs:Date.now()+e};p({waits:{...t,[n]:r}}),R()}function R(){let{channel:e,sent:t,waits:n}=l;A().write({channel:e,sent:t,waits:n})}function z(){if(!(l.isBusy||l.isPassed))return C.abort(),C=new AbortController,C.signal}async function B(){let{channel:e}=l,t=f();if(x(l,t)>0)return;if(!t)return h(e===`sms`?`smsEmpty`:`emailEmpty`,`address`);let i=z();if(!i)return;m(`sending`);let{scene:a,language:o}=r;O=T(`${e} ${t} ${a} ${o}`,O);let{key:s,sinceMs:c}=O,u=await n(n=>k().send({channel:e,to:t,scene:a,locale:o,challenge:n,idempotencyKey:s}),e=>q(e,i),i);u&&!i.aborted&&((u.ok||!v(u.problem))&&(O=void 0),u.ok?V(t,c,u.answer):J(`send`,u.problem))}function V(e,t,n){let{id:r,channel:i,to:a,codeLength:s,expiresAt:c,resendAt:l}=n,d=u(r,t);o.code.value=``,p({step:`code`,isBusy:!1,sent:{id:r,to:e,shownTo:a,codeLength:s,expiresAtMs:Date.parse(c)+d},message:{name:i===`sms`?`sent`:`sentEmail`,values:{n:s},tone:`plain`},wrong:``}),L(Date.parse(l)+d-Date.now()),o.code.focus(),Z(`sent`,{id:r,channel:i,to:a,expiresAt:c,resendAt:l}),i===`sms`&&H()}async function H(){E.abort(),E=new AbortController;let{signal:e}=E,t=await M(e);t&&!e.aborted&&U(t)}function U(e){let{sent:t,isPassed:n,isBusy:r,message:i}=l;if(!t||n||r)return;o.code.value=s(e).slice(0,t.codeLength);let a=o.code.value!==``&&i?.tone===`wrong`;p({wrong:``,...a?{message:void 0}:{}}),o.code.value.length===t.codeLength&&W()}async function W(){let{sent:e,channel:t}=l,i=o.code.value;if(!e||i.length!==e.codeLength)return;let a=z();if(!a)return;m(`checking`);let{id:s,to:c}=e,{scene:u}=r,d=await n(e=>k().check({channel:t,to:c,scene:u,code:i,id:s,challenge:e}),e=>q(e,a),a);d&&!a.aborted&&(d.ok?G(d.answer):J(`check`,d.problem))}function G({pass:e,id:t,scene:n,verifiedAt:r}){E.abort(),A().write(void 0);let{channel:i}=l,a=f();o.carry(e??``,i,a),p({isBusy:!1,isPassed:!0,wrong:``,message:{name:`passed`,tone:`right`}});let s=e&&d(e);s&&(S=setTimeout(K,s)),Z(`passed`,{pass:e,id:t,scene:n,verifiedAt:r,channel:i,to:a})}function K(){I(),h(`passExpired`)}function q(e,t){if(e.kind===`altcha`)return m(`solving`),i(e.challenge,t);let{kind:n,siteKey:r}=e;return new Promise((e,i)=>{t.addEventListener(`abort`,()=>i(t.reason)),p({onAnswer:t=>{m(`solving`),e(t)},message:{name:`challenge`,tone:`plain`}}),Z(`challenge`,{kind:n,siteKey:r,container:o.challenge})})}function J(e,t){let{channel:n,sent:i}=l,{name:a,values:s,about:c=``,waitMs:u,isGone:d,isFault:f}=_(t,{during:e,channel:n,hasOther:r.channels.length>1});f&&console.error(`<postern-code> was refused:`,t),e===`check`&&!v(t)&&(o.code.value=``),d&&i&&(l.sent={...i,expiresAtMs:0},R()),u!==void 0&&L(u),c===`address`&&p({step:`address`,sent:void 0}),h(a,c,s),Z(`refused`,{during:e,problem:t,channel:n})}function ee(){let e=r.channels.find(e=>e!==l.channel);e&&(o.address.value=``,Y(e))}function te(){Y(l.channel),o.address.select()}function Y(e){C.abort(),E.abort(),o.code.value=``,o.challenge.replaceChildren(),p({...b(e),waits:l.waits}),R(),(o.address.hidden?o.send:o.address).focus()}function X(e){r.isRequired&&!l.isPassed&&(e.preventDefault(),e.stopImmediatePropagation(),l.isBusy||(h(`required`,l.step),l.step===`code`&&o.code.focus()))}function Z(e,n){t.dispatchEvent(new CustomEvent(e,{detail:n,bubbles:!0}))}function Q(){l.message?.name===`offline`&&p({message:void 0})}function $({persisted:e}){e&&l.isPassed&&I()}}function P(e,t){e.key!==`Enter`||e.isComposing||(e.preventDefault(),t())}const F=[`src`,`key`,`publishable-key`,`scene`,`channels`,`to`,`for`,`lang`];function I(e){let t=t=>e.getAttribute(t)??``;return{get src(){return t(`src`)},get key(){return t(`publishable-key`)||t(`key`)},get scene(){return t(`scene`)||`default`},get channels(){return(t(`channels`)||`sms,email`).split(/[\s,]+/).filter(e=>e===`sms`||e===`email`)},get language(){return e.closest(`[lang]`)?.getAttribute(`lang`)||navigator.language||`en`},get isRequired(){return e.hasAttribute(`required`)},textOf:t=>e.getAttribute(`text-${t.replace(/[A-Z]/g,e=>`-${e.toLowerCase()}`)}`),get given(){let n=t(`to`);if(n)return{channel:L(n),to:n};let r=t(`for`),i=r&&e.getRootNode().getElementById?.(r);if(i instanceof HTMLInputElement)return{channel:i.type===`email`||i.autocomplete===`email`?`email`:i.type===`tel`?`sms`:L(i.value),to:i.value.trim(),input:i}}}}const L=e=>e.includes(`@`)?`email`:`sms`;let R;function z(e){if(!(`adoptedStyleSheets`in e))return;R||(R=new CSSStyleSheet,R.replaceSync(`
postern-code {
  --_accent: var(--postern-accent, light-dark(#2450d8, #8fb0ff));
  --_on-accent: var(--postern-on-accent, light-dark(#fff, #0c1530));
  --_text: var(--postern-text, light-dark(#171b26, #eceff6));
  --_muted: var(--postern-muted, light-dark(#565d70, #a5adc0));
  --_surface: var(--postern-surface, light-dark(#fff, #171b25));
  --_border: var(--postern-border, light-dark(#828a9c, #737c91));
  --_wrong: var(--postern-wrong, light-dark(#b3261e, #ffa69e));
  --_right: var(--postern-right, light-dark(#136c3a, #72d89c));
  --_radius: var(--postern-radius, 10px);
  --_height: var(--postern-height, 48px);
  --_gap: var(--postern-gap, 8px);
  display: block;
  container-type: inline-size;
  color: var(--_text);
  font-family: var(--postern-font, inherit);
  font-size: var(--postern-font-size, 16px);
  line-height: 1.4;
  text-align: start;
}
postern-code > :not(.postern-field) { display: none }
postern-code .postern-field, postern-code .postern-field * { box-sizing: border-box }
postern-code [hidden] { display: none !important }
postern-code .postern-steps { display: grid }
postern-code .postern-step { grid-area: 1 / 1; min-width: 0; visibility: hidden; display: flex; flex-direction: column; justify-content: end }
postern-code [data-step=address] .postern-step:first-child, postern-code [data-step=code] .postern-step:last-child { visibility: visible }
postern-code .postern-label { display: block; margin: 0 0 6px; font-size: .9375em; font-weight: 500; overflow-wrap: anywhere; color: var(--_text) }
postern-code .postern-row { display: flex; flex-wrap: wrap; gap: var(--_gap) }
postern-code .postern-input, postern-code .postern-button, postern-code .postern-digit {
  height: var(--_height);
  margin: 0;
  border: 1px solid var(--_border);
  border-radius: var(--_radius);
  background: var(--_surface);
  color: var(--_text);
  font: inherit;
}
postern-code .postern-input { flex: 1 1 12em; min-width: 0; width: 0; padding: 0 14px; appearance: none }
postern-code .postern-button {
  flex: 0 0 auto;
  width: auto;
  min-width: 9em;
  padding: 0 16px;
  border-color: transparent;
  background: var(--_accent);
  color: var(--_on-accent);
  font-weight: 600;
  font-variant-numeric: tabular-nums;
  cursor: pointer;
  transition: background-color .15s, color .15s;
}
postern-code .postern-button:hover { background: color-mix(in srgb, var(--_accent) 88%, var(--_text)) }
postern-code .postern-again { border-color: var(--_border); background: transparent; color: var(--_accent) }
postern-code .postern-again:hover { background: color-mix(in srgb, var(--_accent) 10%, transparent) }
postern-code .postern-button[aria-disabled=true] {
  border-color: transparent;
  background: color-mix(in srgb, var(--_muted) 14%, transparent);
  color: var(--_muted);
  cursor: default;
}
postern-code .postern-input:focus-visible, postern-code .postern-button:focus-visible, postern-code .postern-link:focus-visible, postern-code .postern-active {
  outline: 2px solid var(--_accent);
  outline-offset: 2px;
}
postern-code .postern-input:focus-visible, postern-code .postern-active { outline-offset: -1px; border-color: var(--_accent) }
postern-code .postern-digits { position: relative; display: flex; flex: 1 1 12em; gap: var(--_gap); min-width: 0 }
postern-code:dir(rtl) .postern-digits { justify-content: end }
postern-code .postern-digit {
  display: grid;
  flex: 0 1 var(--_height);
  min-width: 0;
  place-items: center;
  font-size: 1.375em;
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}
postern-code .postern-code {
  position: absolute;
  inset: 0;
  z-index: 1;
  width: 100%;
  height: 100%;
  margin: 0;
  padding: 0;
  border: 0;
  outline: 0;
  background: transparent;
  color: transparent;
  caret-color: transparent;
  font: inherit;
  letter-spacing: 1.5em;
  forced-color-adjust: none;
  appearance: none;
}
postern-code .postern-code::selection { background: transparent }
postern-code .postern-code:autofill { -webkit-text-fill-color: transparent; transition: background-color 1s 9999s }
postern-code .postern-active:empty::after { content: ""; width: 2px; height: 45%; background: var(--_accent); animation: postern-blink 1.1s step-end infinite }
postern-code .postern-input[aria-invalid=true], postern-code .postern-code[aria-invalid=true] ~ .postern-digit { border-color: var(--_wrong) }
postern-code [data-tone=wrong] .postern-code[aria-invalid=true] ~ .postern-digit { animation: postern-shake .3s }
postern-code .postern-passed .postern-digit { border-color: var(--_right); color: var(--_right) }
postern-code .postern-passed .postern-again { visibility: hidden }
postern-code .postern-message {
  display: flex;
  gap: 8px;
  min-height: 2.8em;
  margin: 8px 0 0;
  font-size: .875em;
  color: var(--_muted);
}
postern-code .postern-message:not(:empty)::before { box-sizing: border-box; flex: none; width: 1.2em; text-align: center; content: "" / "" }
postern-code [data-tone=plain] .postern-message::before { display: none }
postern-code [data-tone=wrong] .postern-message { color: var(--_wrong) }
postern-code [data-tone=wrong] .postern-message:not(:empty)::before { content: "!" / ""; height: 1.2em; margin-top: .1em; border-radius: 50%; background: var(--_wrong); color: var(--_surface); font-weight: 700; line-height: 1.2 }
postern-code [data-tone=right] .postern-message { color: var(--_right); font-weight: 600 }
postern-code [data-tone=right] .postern-message::before { content: "\\2713" / "" }
postern-code [data-tone=busy] .postern-message:not(:empty)::before { height: 1.2em; margin-top: .1em; border: 2px solid color-mix(in srgb, var(--_accent) 30%, transparent); border-top-color: var(--_accent); border-radius: 50%; animation: postern-turn .8s linear infinite }
postern-code .postern-challenge:not(:empty) { margin-bottom: 8px }
postern-code .postern-links { display: flex; flex-wrap: wrap; gap: 4px 20px; min-height: 24px; margin-top: 4px }
postern-code .postern-passed .postern-links { visibility: hidden }
postern-code .postern-link {
  min-height: 24px;
  margin: 0;
  padding: 0;
  border: 0;
  border-radius: 4px;
  background: none;
  color: var(--_accent);
  font: inherit;
  font-size: .875em;
  text-decoration: underline;
  text-underline-offset: 3px;
  cursor: pointer;
}
@container (max-width: 27em) {
  postern-code .postern-input, postern-code .postern-digits { flex-basis: 100% }
  postern-code .postern-button { flex: 1 1 auto }
  postern-code .postern-digit { flex-grow: 1 }
  postern-code .postern-message { min-height: 4.2em }
}
@keyframes postern-blink { 50% { opacity: 0 } }
@keyframes postern-turn { to { transform: rotate(1turn) } }
@keyframes postern-shake { 25% { transform: translateX(-4px) } 75% { transform: translateX(4px) } }
@media (prefers-reduced-motion: reduce) {
  postern-code .postern-field *, postern-code .postern-field ::before, postern-code .postern-field ::after { animation: none !important; transition: none !important }
}
@media (forced-colors: active) {
  postern-code .postern-active { border-color: Highlight }
  postern-code .postern-active:empty::after { background: CanvasText }
}
`));let t=e;t.adoptedStyleSheets.includes(R)||t.adoptedStyleSheets.push(R)}const B=globalThis.HTMLElement??class{};var V=class extends B{static observedAttributes=F;#e={};#t;connectedCallback(){z(this.getRootNode());for(let e of this.childNodes)e.nodeType===Node.TEXT_NODE&&(e.nodeValue=``);let e=I(this);this.#t=N(this,e,(t,n)=>g(this.#e[t]??e.textOf(t)??m(e.language)[t],n))}disconnectedCallback(){this.#t?.remove(),this.#t=void 0}attributeChangedCallback(e,t,n){t!==n&&(e===`lang`?this.#t?.draw():this.#t?.begin())}get texts(){return this.#e}set texts(e){this.#e=e,this.#t?.draw()}get pass(){return this.#t?.pass()??``}answer(e){this.#t?.answer(e)}reset(){this.#t?.reset()}};globalThis.customElements&&!customElements.get(`postern-code`)&&customElements.define(`postern-code`,V);export{V as PosternCode,r as UnsolvableError,e as createPosternClient,i as solveChallenge};